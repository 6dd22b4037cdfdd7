import { ZerofleetError } from '../../../contracts/index.js';
import type { TokenPiece, Tokens } from '../../../formats/encoding/tokens.js';
import { KeyedChoice } from './keyed-choice.js';
import type { OnSequence, Packer } from './packing.js';
import { type TokenFileShape, TokenFileWriter } from './token-file-writer.js';

/** Part of the data for validation. */
export interface ValidationSplit {
  /** Fraction of the documents, or of the sequences of a single document; 0: none. */
  fraction: number;
  seed: number;
}

export interface SequenceCounts {
  /** Of the training. */
  sequences: number;
  /** Input tokens of these sequences, without padding. */
  useful_tokens: number;
  validation_sequences: number;
  /** Sequences, or with `fit` documents, dropped because none of their tokens counts as a target. */
  without_targets: number;
}

interface SequenceFilesOptions {
  shape: TokenFileShape;
  /** Paths of new files. */
  training: string;
  validation: string;
  split: ValidationSplit;
  num_documents: number;
  newFile(writer: TokenFileWriter): SequenceFile;
}

/** A token file with the rule that makes its sequences. */
export interface SequenceFile {
  readonly writer: TokenFileWriter;
  /** Sequences, or with `fit` documents, that were dropped because they have no target. */
  readonly withoutTargets: number;
  append(tokens: Tokens, counts: Uint8Array | null, starts: boolean): void;
  /** Writes a sequence as it is, without packing it again. */
  copy(tokens: Tokens, counts: Uint8Array): void;
  end(): void;
}

/**
 * Writes the documents of a dataset, in order, to the training file and the validation file. A keyed choice selects the
 * validation documents; it depends on the seed and the number of documents.
 */
export class SequenceFiles {
  private readonly training: SequenceFile;
  private readonly validation: SequenceFile | null;
  /** Choice of validation documents; null when sequences are chosen. */
  private readonly choice: KeyedChoice | null;
  private document = -1;
  /** Its line. */
  private line: number | undefined;
  /** True if the next token is the first of its document. */
  private begins = false;

  constructor(private readonly options: SequenceFilesOptions) {
    const { shape, split, num_documents, newFile } = options;
    this.choice =
      split.fraction > 0 && num_documents > 1
        ? new KeyedChoice(
            split.seed,
            num_documents,
            validationCount(num_documents, split.fraction, 'documents'),
          )
        : null;
    this.training = newFile(new TokenFileWriter(options.training, shape));
    this.validation = split.fraction > 0 ? newFile(new TokenFileWriter(options.validation, shape)) : null;
  }

  append({ tokens, counts, starts, line }: TokenPiece): void {
    if (starts) {
      // The texts of a line are of one document of the dataset.
      if (line === undefined || line !== this.line) this.document++;
      this.line = line;
      this.begins = true;
    }
    // An empty document, or an empty part of one, is not recorded: no two documents begin at the same position.
    if (tokens.length === 0) return;
    const target = this.choice?.has(this.document) ? this.validation : null;
    (target ?? this.training).append(tokens, counts, this.begins);
    this.begins = false;
  }

  /** Finishes both files. @throws ZerofleetError `no_targets`, `dataset_too_small` when one of them has no sequence */
  finish(): SequenceCounts {
    this.training.end();
    const keeps = this.splitOffSequences();
    this.validation?.end();
    for (const file of [this.training, this.validation]) {
      if (file?.writer.numSequences === 0) throw noSequences(file.withoutTargets);
    }
    const training = this.training.writer.finish(keeps);
    const validation = this.validation?.writer.finish();
    return {
      sequences: training.num_sequences,
      useful_tokens: training.useful_tokens,
      validation_sequences: validation?.num_sequences ?? 0,
      without_targets: this.training.withoutTargets + (this.validation?.withoutTargets ?? 0),
    };
  }

  /** Closes both files and removes the temporary files. Idempotent. */
  close(): void {
    this.training.writer.close();
    this.validation?.writer.close();
  }

  /**
   * Copies the validation sequences of a single document, each as a document. Returns the predicate of the sequences
   * that stay for training.
   */
  private splitOffSequences(): ((index: number) => boolean) | undefined {
    const { split, shape } = this.options;
    if (this.choice || !this.validation) return undefined;
    const { writer } = this.training;
    const count = writer.numSequences;
    const choice = new KeyedChoice(split.seed, count, validationCount(count, split.fraction, 'sequences'));
    let index = 0;
    for (const begin of writer.positions()) {
      if (!choice.has(index++)) continue;
      const length = Math.min(shape.sequence_length + 1, writer.numTokens - begin);
      const { tokens, counts } = writer.read(begin, length);
      this.validation.copy(tokens, counts);
    }
    return (number) => !choice.has(number);
  }
}

/** Sequences of consecutive tokens, which a packer finds. */
export class PackedFile implements SequenceFile {
  private readonly packer: Packer;
  private copied = false;

  constructor(
    readonly writer: TokenFileWriter,
    newPacker: (onSequence: OnSequence) => Packer,
  ) {
    this.packer = newPacker((begin) => writer.sequence(begin));
  }

  get withoutTargets(): number {
    return this.packer.withoutTargets;
  }

  append(tokens: Tokens, counts: Uint8Array | null, starts: boolean): void {
    this.writer.append(tokens, counts, starts);
    this.packer.add(tokens.length, counts, starts);
  }

  copy(tokens: Tokens, counts: Uint8Array): void {
    this.copied = true;
    this.writer.sequence(this.writer.numTokens);
    this.writer.append(tokens, counts, true);
  }

  end(): void {
    if (!this.copied) this.packer.end();
  }
}

/** Returns the number of validation items of `count`: at least one, and at least one is left. */
export function validationCount(count: number, fraction: number, noun: string): number {
  if (count < 2)
    throw tooSmall(
      `the data has ${count} ${noun}, too few for a validation split; leave validation_fraction out`,
    );
  return Math.min(count - 1, Math.max(1, Math.round(count * fraction)));
}

function noSequences(withoutTargets: number): ZerofleetError {
  if (withoutTargets === 0) return tooSmall('there are too few tokens for one sequence');
  return new ZerofleetError(
    'no_targets',
    `none of ${withoutTargets} sequences (100 %) has a token that counts as a target, so there is nothing to learn; in ` +
      'chats the messages of the assistant count, in token files the loss mask decides',
  );
}

function tooSmall(message: string): ZerofleetError {
  return new ZerofleetError('dataset_too_small', message);
}
