"""Small models of each family: those of ../families/ as configurations of transformers."""

import json
from pathlib import Path

from transformers import AutoConfig

FOLDER = Path(__file__).parent.parent
SIZES = json.loads((FOLDER / "family-sizes.json").read_text())
FAMILIES = {path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / "families").glob("*.json"))}


def models(section):
    """Names of the models of a section, with their family and their fields."""
    return {name: (family, fields) for family, sections in FAMILIES.items()
            for name, fields in sections.get(section, {}).items()}


def config_of(family, fields, **defaults):
    """A configuration with the sizes, and those of the defaults that the family has."""
    known = AutoConfig.for_model(family)
    given = {key: value for key, value in {**SIZES, **defaults}.items() if hasattr(known, key)}
    return AutoConfig.for_model(family, **{**given, **fields})
