#!/usr/bin/env python3
"""Makes token ids of a text, for `tokens` in data.pipe.

    tokenise.py TEXT OUT [VOCAB]    ->  OUT/tokenizer.json, OUT/train.bin, OUT/held_out.bin

Trains a byte-pair tokenizer with at most VOCAB entries (1024) on TEXT, a file, and writes its ids as u16 without a header, the last
tenth of them as held-out data. Needs `pip install tokenizers`.
"""
import array
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    text, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    vocab = int(sys.argv[3]) if len(sys.argv) == 4 else 1024
    if not 256 <= vocab <= 65536:
        sys.exit("ids of u16 need a vocabulary from 256 to 65536")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train([str(text)], trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=alphabet, show_progress=False))
    ids = array.array("H", tokenizer.encode(text.read_text(encoding="utf-8")).ids)
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
