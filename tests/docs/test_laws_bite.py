"""Laws over predictions must fail if the model predicts nothing, or the same for all."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable

import pytest
from folders import ROOT, TESTS

# Modules of laws and examples over predictions, and their tests that need none.
LAWS = {
    "test_timing_laws": {},
    "test_right_answers": {
        "test_pairs_that_a_band_leaves_are_those_of_the_brute_force": "counts a mask",
        "test_operations_are_those_that_the_mask_leaves": "counts a problem's operations",
        "test_one_chip_has_one_roof_for_its_sixteen_bit_types": "draws roofs from specs",
        "test_power_that_is_slack_is_no_limiter_however_large_its_term": "ranks given terms",
    },
    "test_physics": {
        "test_the_command_says_what_it_checked": "runs in a process of its own",
        "test_cliffs_say_why_and_the_model_page_leads_to_them": "reads a document",
    },
    "test_predict": {},
    "test_step_laws": {
        "test_what_lacks_is_said_in_bytes": "adds given bytes up",
        "test_overlap_lies_between_the_larger_and_the_sum": "joins given seconds",
        "test_an_exchange_in_tiles_hides_all_but_a_tile_at_most": "joins given seconds",
        "test_megatrons_fused_softmax_takes_multiples_of_four_heads": "lists kernels",
        "test_gradients_of_inputs_are_added_up_beside_those_of_weights": "joins given seconds",
        "test_a_part_that_nothing_has_is_refused": "refuses before it predicts",
    },
    "test_why": {},
    "test_transfer": {},
    "test_unfused": {
        "test_operators_move_and_multiply_what_the_schedule_counts": "counts schedules",
    },
}
# Modules of which many tests are about single terms: what asks the model must fail there too.
OTHERS = ("test_timing_terms", "test_timing_pipeline", "test_timing_memory", "test_library_rules",
          "test_slices")  # fmt: skip
# The same of whole runs: train, infer, collective, offload, compress, networks.
RUNS = ("test_step_laws", "test_finetuning", "test_host_updates", "test_training_run",
        "test_planning",
        "test_serving", "test_collectives", "test_offload", "test_compression",
        "test_serving_queue", "test_serving_search", "test_serving_images",
        "test_chains", "test_nearest")  # fmt: skip
# They ask a model that refuses everything and pass.
REFUSED: dict[str, str] = {}
# They ask a model that gives one answer to all questions and pass.
_EQUAL = "holds of equal answers: no less, no more, as much"
_FIRST = "asks the first question of the run, whose answer it is"
_APART = "is about what stands beside the answer: a refusal, a text, a count of kernels"
REPEATED = {
    "test_chains::test_even_groups_take_as_long_as_a_batch_of_equal_products": _EQUAL,
    "test_chains::test_a_launch_without_meaning_says_which": _APART,
    "test_chains::test_arrays_of_a_chain_are_its_single_problems": _EQUAL,
    "test_planning::test_every_legal_plan_can_be_laid_out": "lays plans out and times none",
    "test_training_run::test_a_checkpoint_has_master_weights_and_states_once": "counts states",
    "test_training_run::test_the_command_prices_a_run": _FIRST,
    "test_training_run::test_hours_are_tokens_over_the_rate_and_all_else_follows": _FIRST,
    "test_step_laws::test_keys_that_are_gathered_before_attention_are_waited_for":
        "is about exchanges, which ask for no kernel",
    "test_step_laws::test_shards_of_one_copy_are_the_whole": _EQUAL,
    "test_step_laws::test_recomputing_more_never_holds_more_between_passes": _EQUAL,
    "test_step_laws::test_the_parts_of_a_pipelines_step_are_no_longer_than_it": _EQUAL,
    "test_step_laws::test_where_links_are_equal_it_is_the_same_which_devices_are_neighbours":
        _EQUAL,
    "test_serving::test_a_step_of_more_sequences_or_longer_ones_takes_no_less": _FIRST,
    "test_serving::test_a_longer_prompt_takes_longer": _FIRST,
    "test_serving::test_a_mixed_step_takes_less_than_its_parts_and_more_than_each": _FIRST,
    "test_serving::test_more_memory_never_lowers_the_batch_that_fits": _EQUAL,
    "test_serving::test_a_shared_prefix_is_kept_once": _EQUAL,
    "test_serving::test_terms_of_memory_add_up": "adds terms up",
    "test_serving::test_experts_of_one_token_each_run_at_every_batch": _FIRST,
    "test_serving::test_experts_on_the_devices_of_a_copy_share_its_reduction": _EQUAL,
    "test_nearest::test_loads_that_no_published_run_is_like_have_none": _APART,
    "test_nearest::test_commands_say_the_nearest_run_in_a_line": _APART,
    "test_nearest::test_a_page_has_the_nearest_runs_in_a_table": _APART,
    "test_serving_images::test_many_images_take_more_activations_than_a_step_of_the_text":
        "counts tensors of a pass",
    "test_offload::test_llama_cpp_on_several_gpus_takes_as_long_as_on_one": _EQUAL,
    "test_offload::test_grouped_and_latent_heads_have_nothing_to_gain": _APART,
    "test_offload::test_flexgens_own_model_is_exact": _FIRST,
    "test_offload::test_activations_cross_the_link_for_each_sequence": _APART,
    "test_offload::test_more_at_hand_never_sends_more": _EQUAL,
    "test_offload::test_published_streams_stay_below_the_links_bound": _EQUAL,
    "test_compression::test_a_type_of_stated_bits_is_timed_as_the_named_one": _EQUAL,
    "test_compression::test_fewer_stored_bits_of_a_kind_of_kernel_never_take_longer": _EQUAL,
    "test_compression::test_tiles_are_extracted_for_each_product_of_a_batch": _APART,
    "test_compression::test_the_sparse_part_of_squeezellm_is_a_second_kernel": _APART,
    "test_compression::test_zeros_skip_no_operations_of_the_matrix_unit": _EQUAL,
    "test_compression::test_what_is_widened_gains_nothing_once_multiplying_takes_longer": _EQUAL,
}  # fmt: skip


def living(kind: str, names: Iterable[str]) -> dict[str, bool]:
    """Tests that pass with a model that is dead in a way, as module::name, and whether they asked
    it."""
    modules = [str(next(TESTS.glob(f"*/{name}.py"))) for name in names]
    options = ["-p", "deadmodel", "--hypothesis-profile", "dead", "-p", "no:cacheprovider",
               "-p", "no:xdist", "-q", "--tb=no", "-r", "N"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *modules],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(TESTS), "DEAD_MODEL": kind},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    lines = re.findall(r"^LIVES \S*?(\w+)\.py::(\S+) (asked|quiet)$", done.stdout, re.MULTILINE)
    assert lines
    assert re.search(r"\d+ failed", done.stdout)
    return {f"{module}::{name}": asked == "asked" for module, name, asked in lines}


@pytest.fixture(scope="module")
def alive() -> dict[str, bool]:
    """What passes with a model that refuses everything.

    Runs are asked of a model that repeats itself: what passes where nothing is answered passes
    there too.
    """
    return living("refuses", (*LAWS, *OTHERS))


@pytest.mark.parametrize("module", LAWS)
def test_every_law_fails_without_a_model(alive, module):
    passed = {name.partition("::")[2] for name in alive if name.startswith(f"{module}::")}
    assert passed == set(LAWS[module])


def test_whatever_asks_the_model_fails_without_it(alive):
    assert {name for name, asked in alive.items() if asked} == set(REFUSED)


def test_whatever_asks_for_a_run_fails_with_one_answer_to_all():
    """What is left is known, with a reason; nothing of collectives is."""
    passed = {name for name, asked in living("repeats", RUNS).items() if asked}
    assert passed == set(REPEATED)
