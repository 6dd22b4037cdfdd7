/** Reader of a `tokenizer.model` of SentencePiece: a protocol buffer with the pieces and how texts become pieces. */
import { ZerofleetError } from '../../contracts/index.js';
import { protoFields } from './protobuf.js';

const PIECE_TYPES = {
  1: 'normal',
  2: 'unknown',
  3: 'control',
  4: 'user_defined',
  5: 'unused',
  6: 'byte',
} as const;
type PieceType = (typeof PIECE_TYPES)[keyof typeof PIECE_TYPES];

export interface Piece {
  text: string;
  score: number;
  type: PieceType;
}

export interface SentencepieceModel {
  /** By id. */
  pieces: readonly Piece[];
  /** 1: unigram, 2: BPE, 3: words, 4: characters. */
  model_type: number;
  byte_fallback: boolean;
  treat_whitespace_as_suffix: boolean;
  bos_piece: string;
  eos_piece: string;
  pad_piece: string;
  /** Table of replacements; empty: none. */
  precompiled_charsmap: Buffer;
  add_dummy_prefix: boolean;
  remove_extra_whitespaces: boolean;
  escape_whitespaces: boolean;
  /** Table of replacements in decoded texts; empty: none. */
  denormalizer_charsmap: Buffer;
}

/** The largest known vocabularies have 262,144 pieces. */
const MAX_PIECES = 1 << 20;
/** The longest pieces have some dozen characters. */
const MAX_PIECE_BYTES = 1024;

/** @throws ZerofleetError `tokenizer_invalid` */
export function readSentencepiece(name: string, bytes: Uint8Array): SentencepieceModel {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const pieces: Piece[] = [];
    const parts = new Map<number, Buffer>();
    for (const { number, value } of protoFields(file)) {
      if (!Buffer.isBuffer(value)) throw new RangeError(`field ${number} is no message`);
      if (number !== PIECES) parts.set(number, value);
      else if (pieces.push(pieceOf(value, pieces.length)) > MAX_PIECES)
        throw new RangeError(`it has more than ${MAX_PIECES} pieces`);
    }
    if (pieces.length === 0) throw new RangeError('it has no pieces');
    return { pieces, ...settingsOf(parts) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw sentencepieceRefused(name, `is no readable SentencePiece model: ${error.message}`);
  }
}

export function sentencepieceRefused(name: string, problem: string): ZerofleetError {
  return new ZerofleetError(
    'tokenizer_invalid',
    `${name} ${problem}; upload the tokenizer.json that AutoTokenizer.from_pretrained(folder).save_pretrained(folder) of transformers writes`,
    { details: { file: name } },
  );
}

/** Fields of the file's message. */
const PIECES = 1;
const TRAINER = 2;
const NORMALIZER = 3;
const DENORMALIZER = 5;

function settingsOf(parts: ReadonlyMap<number, Buffer>): Omit<SentencepieceModel, 'pieces'> {
  const trainer = new Message(parts.get(TRAINER));
  const normalizer = new Message(parts.get(NORMALIZER));
  return {
    model_type: trainer.number(3, 1),
    treat_whitespace_as_suffix: trainer.flag(24, false),
    byte_fallback: trainer.flag(35, false),
    bos_piece: trainer.text(46, '<s>'),
    eos_piece: trainer.text(47, '</s>'),
    pad_piece: trainer.text(48, '<pad>'),
    precompiled_charsmap: normalizer.bytes(2),
    add_dummy_prefix: normalizer.flag(3, true),
    remove_extra_whitespaces: normalizer.flag(4, true),
    escape_whitespaces: normalizer.flag(5, true),
    denormalizer_charsmap: new Message(parts.get(DENORMALIZER)).bytes(2),
  };
}

function pieceOf(message: Buffer, id: number): Piece {
  const fields = new Message(message);
  const text = fields.text(1, '');
  const type = PIECE_TYPES[fields.number(3, 1) as keyof typeof PIECE_TYPES];
  const score = fields.float(2, 0);
  if (text === '' || Buffer.byteLength(text) > MAX_PIECE_BYTES)
    throw new RangeError(`the text of piece ${id} must have 1 to ${MAX_PIECE_BYTES} bytes`);
  if (type === undefined) throw new RangeError(`piece ${id} has the unknown type ${fields.number(3, 1)}`);
  if (!Number.isFinite(score)) throw new RangeError(`the score of piece ${id} is ${score}`);
  return { text, score, type };
}

/** Fields of a message by number; the last one of a number counts. */
class Message {
  private readonly fields = new Map<number, bigint | Buffer>();

  constructor(message: Buffer = Buffer.alloc(0)) {
    for (const { number, value } of protoFields(message)) this.fields.set(number, value);
  }

  number(field: number, missing: number): number {
    const value = this.fields.get(field);
    if (Buffer.isBuffer(value)) throw new RangeError(`field ${field} is no number`);
    return value === undefined ? missing : Number(value);
  }

  flag(field: number, missing: boolean): boolean {
    return this.number(field, Number(missing)) !== 0;
  }

  float(field: number, missing: number): number {
    const value = this.fields.get(field);
    if (value === undefined) return missing;
    if (!Buffer.isBuffer(value) || value.length !== 4) throw new RangeError(`field ${field} is no float`);
    return value.readFloatLE();
  }

  bytes(field: number): Buffer {
    const value = this.fields.get(field) ?? Buffer.alloc(0);
    if (!Buffer.isBuffer(value)) throw new RangeError(`field ${field} is no text`);
    return value;
  }

  text(field: number, missing: string): string {
    if (!this.fields.has(field)) return missing;
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.bytes(field));
    } catch (error) {
      if (error instanceof TypeError) throw new RangeError(`the text of field ${field} is not UTF-8`);
      throw error;
    }
  }
}
