"""Writes similarity.json: similarities of texts by nltk 3.10, RapidFuzz 3.14 and torchmetrics 1.9 (ROUGE).

  python3 make_golden_similarity.py > similarity.json
"""
import json

from nltk.stem.porter import PorterStemmer
from nltk.translate.bleu_score import sentence_bleu
from nltk.translate.gleu_score import sentence_gleu
from nltk.translate.meteor_score import single_meteor_score
from rapidfuzz.fuzz import ratio
from torchmetrics.functional.text.rouge import rouge_score

TEXTS = [
    ("the cat sat on the mat", "the cat sat on the mat"),
    ("the cat sat on the mat", "on the mat the cat was sitting"),
    ("The quick brown fox jumps over the lazy dog.", "A quick brown dog jumped over lazy foxes, quickly!"),
    ("42", "42"),
    ("forty two", "42"),
    ("", "nothing was answered"),
    ("an answer", ""),
    ("Zürich läßt grüßen: naïve café", "Zurich lässt grüßen naive cafe"),
    ("数学 は 楽しい 🙂🙂", "数学 が 楽しい 🙂"),
    ("a a a a b b", "a b a b a b"),
    ("running runs runner easily relational hopping", "run ran runners ease relate hopped"),
    ("x = (3 + 4) * 12; print(x)", "x=(3+4)*12\nprint( x )"),
    ("one two three four five six seven eight nine ten " * 8, "ten nine eight seven six five four three two one " * 8),
    ("one two three four five six seven eight nine ten " * 8, "one two three five six seven nine ten " * 9),
]


class NoSynonyms:
    """WordNet without entries."""

    def synsets(self, _word):
        return []


def similarities(text, reference):
    words, reference_words = text.split(), reference.split()
    stemmer = PorterStemmer(mode=PorterStemmer.MARTIN_EXTENSIONS)
    keys = ("rouge1", "rouge2", "rouge3", "rouge4", "rouge5", "rougeL")
    rouge = rouge_score(text, reference, rouge_keys=keys)
    return {
        "fuzzy_match": ratio(text, reference) / 100,
        "bleu": sentence_bleu([reference_words], words, auto_reweigh=True),
        "gleu": sentence_gleu([reference_words], words),
        "meteor": single_meteor_score(reference_words, words, stemmer=stemmer, wordnet=NoSynonyms()),
        **{key.replace("rouge", "rouge_").lower(): float(rouge[f"{key}_fmeasure"]) for key in keys},
    }


print(json.dumps([{"input": a, "reference": b, **similarities(a, b)} for a, b in TEXTS], indent=1))
