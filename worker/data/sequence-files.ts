import { ZerofleetError } from '../../contracts/index.js';
import type { Tokens } from '../encoding/tokens.js';
import { KeyedChoice } from './keyed-choice.js';
import type { OnSequence, Packer } from './packing.js';
import { type TokenFileShape, TokenFileWriter } from './token-file-writer.js';

/** Which part of the data is set aside to evaluate on. */
export interface ValidationSplit {
  /** Of the documents, or of the sequences where there is only one document; 0: none. */
  fraction: number;
  seed: number;
}

export interface SequenceCounts {
  sequences: number;
  validation_sequences: number;
  /** Sequences that were left out because no token of theirs counts as a target. */
  without_targets: number;
}

export interface SequenceFilesOptions {
  shape: TokenFileShape;
  /** Paths to write to; nothing may be there. */
  training: string;
  validation: string;
  split: ValidationSplit;
  num_documents: number;
  newPacker(onSequence: OnSequence): Packer;
}

/**
 * Writes the documents of a dataset, in their order, to the file that is trained on and the one that is evaluated on.
 * Which are set aside is a keyed choice: it depends on the seed and on how many there are.
 */
export class SequenceFiles {
  private readonly training: PackedFile;
  private readonly validation: PackedFile | null;
  /** Documents that are set aside; null where sequences are. */
  private readonly choice: KeyedChoice | null;
  private document = -1;
  /** Whether the next token is the first of its document. */
  private begins = false;

  constructor(private readonly options: SequenceFilesOptions) {
    const { shape, split, num_documents, newPacker } = options;
    this.choice =
      split.fraction > 0 && num_documents > 1
        ? new KeyedChoice(split.seed, num_documents, asideOf(num_documents, split.fraction, 'documents'))
        : null;
    this.training = new PackedFile(new TokenFileWriter(options.training, shape), newPacker);
    this.validation =
      split.fraction > 0 ? new PackedFile(new TokenFileWriter(options.validation, shape), newPacker) : null;
  }

  /** The next tokens; the arguments are TokenFileWriter.append()'s. */
  append(tokens: Tokens, counts: Uint8Array | null, starts: boolean): void {
    if (starts) {
      this.document++;
      this.begins = true;
    }
    // A document without a token, or a part of one, is nowhere in the file: no two documents begin at the same place.
    if (tokens.length === 0) return;
    const aside = this.choice?.has(this.document) ? this.validation : null;
    (aside ?? this.training).append(tokens, counts, this.begins);
    this.begins = false;
  }

  /** Ends both files. @throws ZerofleetError `no_targets`, `dataset_too_small` when one of them has nothing to read */
  finish(): SequenceCounts {
    this.training.end();
    const keeps = this.setSequencesAside();
    this.validation?.end();
    for (const file of [this.training, this.validation]) {
      if (file?.writer.num_sequences === 0) throw nothingToRead(file.without_targets);
    }
    const training = this.training.writer.finish(keeps);
    const validation = this.validation?.writer.finish();
    return {
      sequences: training.num_sequences,
      validation_sequences: validation?.num_sequences ?? 0,
      without_targets: this.training.without_targets + (this.validation?.without_targets ?? 0),
    };
  }

  /** Lets go of both files, and removes the temporary ones beside them. Idempotent. */
  close(): void {
    this.training.writer.close();
    this.validation?.writer.close();
  }

  /** Of one document some sequences are copied, each as a document. Returns which ones stay for training. */
  private setSequencesAside(): ((index: number) => boolean) | undefined {
    const { split, shape } = this.options;
    if (this.choice || !this.validation) return undefined;
    const { writer } = this.training;
    const count = writer.num_sequences;
    const choice = new KeyedChoice(split.seed, count, asideOf(count, split.fraction, 'sequences'));
    let index = 0;
    for (const begin of writer.places()) {
      if (!choice.has(index++)) continue;
      const length = Math.min(shape.sequence_length + 1, writer.num_tokens - begin);
      const { tokens, counts } = writer.read(begin, length);
      this.validation.copy(tokens, counts);
    }
    return (number) => !choice.has(number);
  }
}

/** A token file and the packer that cuts it. */
class PackedFile {
  private readonly packer: Packer;
  private copied = false;

  constructor(
    readonly writer: TokenFileWriter,
    newPacker: (onSequence: OnSequence) => Packer,
  ) {
    this.packer = newPacker((begin) => writer.sequence(begin));
  }

  get without_targets(): number {
    return this.packer.without_targets;
  }

  append(tokens: Tokens, counts: Uint8Array | null, starts: boolean): void {
    this.writer.append(tokens, counts, starts);
    this.packer.add(tokens.length, counts, starts);
  }

  /** A sequence that was cut already. */
  copy(tokens: Tokens, counts: Uint8Array): void {
    this.copied = true;
    this.writer.sequence(this.writer.num_tokens);
    this.writer.append(tokens, counts, true);
  }

  end(): void {
    if (!this.copied) this.packer.end();
  }
}

/** How many of `count` are set aside: at least one, and one is left. */
function asideOf(count: number, fraction: number, what: string): number {
  if (count < 2)
    throw tooSmall(
      `the data has ${count} ${what}, too few to set a part aside; leave validation_fraction out`,
    );
  return Math.min(count - 1, Math.max(1, Math.round(count * fraction)));
}

function nothingToRead(without_targets: number): ZerofleetError {
  if (without_targets === 0) return tooSmall('there are too few tokens for one sequence');
  return new ZerofleetError(
    'no_targets',
    `none of ${without_targets} sequences (100 %) has a token that counts as a target, so there is nothing to learn; of ` +
      'chats the messages of the assistant count, of token files what the loss mask says',
  );
}

function tooSmall(message: string): ZerofleetError {
  return new ZerofleetError('dataset_too_small', message);
}
