import type { DecoderTable } from '../../tokenizer/token-decoder.js';

export const printable = Array.from({ length: 0x5f }, (_, index) => String.fromCharCode(0x20 + index));
const WORDS = ['true', 'null', 'name', 'value', 'ab', '":', '"}', '","', '{"', ']}', '}]', '10', '.5', 'e+1'];

/** A byte-level tokenizer: characters stand for bytes. `</s>` is a special token, which has no text. */
function byteLevel(): DecoderTable {
  const plain = [...Array(256).keys()].filter(
    (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173),
  );
  const others = [...Array(256).keys()].filter((byte) => !plain.includes(byte));
  const characterOf = new Map(plain.map((byte) => [byte, String.fromCharCode(byte)]));
  for (const [index, byte] of others.entries()) characterOf.set(byte, String.fromCharCode(256 + index));
  const textOf = (bytes: Iterable<number>) => Array.from(bytes, (byte) => characterOf.get(byte)).join('');
  const texts = [...Array(256).keys()].map((byte) => textOf([byte]));
  for (const word of [...WORDS, ' ', '  ', '\n  ', '": ', ', "', 'größe', '😀', 'ü"', '\\u00'])
    texts.push(textOf(Buffer.from(word)));
  texts.push(textOf([0xc3]), textOf([0x9f, 0x65]), textOf([0xf0, 0x9f]), textOf([0x98, 0x80, 0x22]));
  return tableOf(texts, { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true });
}

/** A tokenizer in the manner of SentencePiece. */
function metaspace(): DecoderTable {
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
  );
  const words = [
    ...printable.filter((character) => character !== ' '),
    '▁',
    '▁▁',
    ...WORDS,
    '▁"',
    '▁{',
    'ö',
    '世界',
  ];
  const parts = [
    { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
    { type: 'ByteFallback' },
    { type: 'Fuse' },
    { type: 'Strip', content: ' ', start: 1, stop: 0 },
  ];
  return tableOf([...bytes, ...words], { type: 'Sequence', decoders: parts });
}

function wordPiece(): DecoderTable {
  const words = printable.filter((character) => character !== ' ');
  return tableOf(['a', '## ', ...words.map((word) => `##${word}`), ...words, ...WORDS, '##ab', '##ü'], {
    type: 'WordPiece',
    prefix: '##',
    cleanup: false,
  });
}

/** The first token has no text. */
export function tableOf(texts: readonly string[], decoder: object): DecoderTable {
  return { texts: new Map(texts.map((text, index) => [index + 1, text])), decoder };
}

export const TOKENIZERS: Readonly<Record<string, { table: DecoderTable | null; size: number }>> = {
  bytes: { table: null, size: 256 },
  'byte-level': { table: byteLevel(), size: 300 },
  metaspace: { table: metaspace(), size: 450 },
  'word pieces': { table: wordPiece(), size: 320 },
};
