"""The measured-run table (`records`), and the published runs that come with the package."""
