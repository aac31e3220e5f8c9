#!/usr/bin/env python3
"""Makes token ids of a text, for `tokens` in data.pipe.

    tokenise.py TEXT OUT [VOCAB]    ->  OUT/tokenizer.json, OUT/train.bin, OUT/held_out.bin

Trains a byte-pair tokenizer with at most VOCAB entries (1024) on TEXT, a file, and writes its ids as u16 without a header, the last
tenth of them as held-out data. Needs `pip install tokenizers`.
"""
import array
import pathlib
import sys

try:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError:
    sys.exit("tokenise.py needs the package tokenizers: pip install tokenizers")


def text_of(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"cannot read {path} as text: {error}")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    path, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    vocab = sys.argv[3] if len(sys.argv) == 4 else "1024"
    if not vocab.isdecimal() or not 256 <= int(vocab) <= 65536:
        sys.exit(f"VOCAB is {vocab}; ids of u16 need a number from 256 to 65536")
    text = text_of(path)
    if not text:
        sys.exit(f"{path} is empty")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train([str(path)], trainers.BpeTrainer(vocab_size=int(vocab), initial_alphabet=alphabet, show_progress=False))
    ids = array.array("H", tokenizer.encode(text).ids)
    if sys.byteorder == "big":
        ids.byteswap()
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    split = len(ids) - len(ids) // 10
    for name, part in (("train.bin", ids[:split]), ("held_out.bin", ids[split:])):
        (out / name).write_bytes(part.tobytes())
        print(f"{out / name}: {len(part)} tokens below {tokenizer.get_vocab_size()}")


if __name__ == "__main__":
    main()
