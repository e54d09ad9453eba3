"""What MkDocs does beside building the pages of docs/."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the changelog of the repository as a page."""
    if config.config_file_path and (changelog := Path(config.config_file_path).with_name("CHANGELOG.md")).is_file():
        files.append(File.generated(config, "changelog.md", abs_src_path=str(changelog)))
    return files
