"""How tests give texts to a format, as files."""

from tilewright.interop import FORMATS


def read_texts(name, tmp_path, *texts):
    """Return what files of these texts hold, read as the format of this name."""
    paths = [tmp_path / f"file{number}.yaml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return FORMATS.get(name).read(paths, {})
