"""Fast code generated from the rule that is read: the model's own Python runs once on recording
numbers (`recording`), the recorded operations (`graph`) are written as C (`writer`), and the
machine's C compiler builds them (`build`). `variants` keeps one variant for each kind of call.
"""
