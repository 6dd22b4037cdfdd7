import { FitFile } from '../../worker/tasks/data/fit.js';
import { WholePacker } from '../../worker/tasks/data/packing.js';
import { PackedFile, type SequenceFile } from '../../worker/tasks/data/sequence-files.js';
import { TokenFileWriter } from '../../worker/tasks/data/token-file-writer.js';

/** Kinds of rows: see finetune.ts. */
export const DATA_KINDS = ['padded', 'whole', 'fit'] as const;
export type DataKind = (typeof DATA_KINDS)[number];

/** A text of random tokens, whose completion is learned. */
export interface Text {
  prompt: number[];
  completion: number[];
}

/** Texts of a row, or the two of a pair. */
export type Units = Text[][];

/** Tokens of instruction data: about log-normal, 255 on average and 1,091 at most, a third of them in the prompt. */
const [MEDIAN, SPREAD, SHORTEST, LONGEST, PROMPT_SHARE] = [200, 0.7, 12, 1091, 1 / 3];

/** Numbers in [0, 1) that are the same in each run. */
function* uniform(seed: number): Generator<number, never> {
  for (let state = seed >>> 0; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state / 2 ** 32;
  }
}

class Random {
  private readonly numbers: Generator<number, never>;

  constructor(seed: number) {
    this.numbers = uniform(seed);
  }

  next(): number {
    return this.numbers.next().value;
  }

  length(): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
    return Math.min(LONGEST, Math.max(SHORTEST, Math.round(MEDIAN * Math.exp(SPREAD * normal))));
  }

  tokens(count: number, vocabSize: number): number[] {
    return Array.from({ length: count }, () => Math.floor(this.next() * vocabSize));
  }
}

/** One text a unit. */
export function textsLike(count: number, limit: number, vocabSize: number): Units {
  const random = new Random(1);
  return Array.from({ length: count }, () => {
    const length = Math.min(limit + 1, random.length());
    const prompt = Math.ceil(length * PROMPT_SHARE);
    return [
      { prompt: random.tokens(prompt, vocabSize), completion: random.tokens(length - prompt, vocabSize) },
    ];
  });
}

/** Two texts a unit, with one prompt. */
export function pairsLike(count: number, limit: number, vocabSize: number): Units {
  const random = new Random(2);
  return textsLike(count, limit, vocabSize).map(([text]) => {
    const { prompt = [], completion = [] } = text ?? {};
    const rest = Math.max(1, Math.min(limit + 1, random.length()) - prompt.length);
    return [
      { prompt, completion },
      { prompt, completion: random.tokens(rest, vocabSize) },
    ];
  });
}

/** Writes the rows of a file, and returns the mean of a unit's useful tokens, and the share of padding in the rows. */
export function writeRows(path: string, units: Units, kind: DataKind, limit: number) {
  const writer = new TokenFileWriter(path, { token_bytes: 4, sequence_length: limit });
  const texts = units.flat();
  const isPaired = (units[0]?.length ?? 1) > 1;
  const file = fileOf(writer, kind, limit, isPaired);
  for (const { prompt, completion } of texts) {
    const length = prompt.length + completion.length;
    // Zeros that are learned are computed like texts.
    const padded = kind === 'padded' ? limit + 1 : length;
    const tokens = Uint32Array.from(
      { length: padded },
      (_, i) => prompt[i] ?? completion[i - prompt.length] ?? 0,
    );
    const counts = Uint8Array.from(tokens, (_, i) => (kind === 'padded' || i >= prompt.length ? 1 : 0));
    if (isPaired || kind === 'padded') file.copy(tokens, counts);
    else file.append(tokens, counts, true);
  }
  file.end();
  const { num_sequences } = writer.finish();
  // The last token of a text is a target alone.
  const useful = texts.reduce(
    (sum, { prompt, completion }) => sum + prompt.length + completion.length - 1,
    0,
  );
  return {
    tokens_per_unit: (useful * (isPaired ? 2 : 1)) / num_sequences,
    padding: 1 - useful / (num_sequences * limit),
  };
}

function fileOf(writer: TokenFileWriter, kind: DataKind, limit: number, isPaired: boolean): SequenceFile {
  if (kind === 'fit' && !isPaired) return new FitFile(writer, limit);
  return new PackedFile(writer, (onSequence) => new WholePacker(limit, onSequence));
}
