import { ZerofleetError } from '../../../contracts/index.js';
import type { TokenPiece } from '../../../formats/encoding/tokens.js';
import { countTargets } from '../../../formats/encoding/tokens.js';
import type { Unit } from '../../../job-document/index.js';
import { KeyedChoice } from './keyed-choice.js';
import { type SequenceCounts, type ValidationSplit, validationCount } from './sequence-files.js';
import { type TokenFileShape, TokenFileWriter } from './token-file-writer.js';

interface UnitFilesOptions {
  shape: TokenFileShape;
  /** Paths of new files. */
  training: string;
  validation: string;
  /** Part of the units for validation. */
  split: ValidationSplit;
  unit: Unit;
  num_units: number;
}

interface UnitCounts extends SequenceCounts {
  /** Tokens of the files that count in the loss. */
  targets: number;
}

/**
 * Writes preferences, in order, to the training file and the validation file. Each completion with its prompt is a
 * document and a sequence of its own, and the sequences of a pair follow each other. A sequence keeps its first
 * sequence_length + 1 tokens, the longest that has a target for each input. A unit is left out whole when a sequence of
 * it has no target. A keyed choice selects the validation units; it depends on the seed and the number of units.
 */
export class UnitFiles {
  private readonly training: TokenFileWriter;
  private readonly validation: TokenFileWriter | null;
  private readonly choice: KeyedChoice | null;
  private readonly unitSequences: number;
  /** Sequences of the current unit so far. */
  private pending: TokenPiece[] = [];
  private unit = 0;
  private targets = 0;
  private withoutTargets = 0;

  /** @throws ZerofleetError `dataset_too_small` when there are too few units for a split */
  constructor(private readonly options: UnitFilesOptions) {
    const { shape, split, num_units } = options;
    const numHeldBack = split.fraction > 0 ? validationCount(num_units, split.fraction, 'samples') : 0;
    this.choice = numHeldBack > 0 ? new KeyedChoice(split.seed, num_units, numHeldBack) : null;
    this.unitSequences = options.unit === 'pair' ? 2 : 1;
    this.training = new TokenFileWriter(options.training, shape);
    this.validation = numHeldBack > 0 ? new TokenFileWriter(options.validation, shape) : null;
  }

  /** Appends a whole sequence. */
  append({ tokens, counts, starts }: TokenPiece): void {
    const kept = this.options.shape.sequence_length + 1;
    this.pending.push({
      tokens: tokens.subarray(0, kept),
      counts: counts?.subarray(0, kept) ?? null,
      starts,
    });
    if (this.pending.length === this.unitSequences) this.endUnit();
  }

  /** Finishes both files. @throws ZerofleetError `no_targets` when one of them has no sequence */
  finish(): UnitCounts {
    const { training, validation, withoutTargets, targets } = this;
    for (const file of [training, validation]) if (file?.numSequences === 0) throw this.nothingLeft();
    const { num_sequences, useful_tokens } = training.finish();
    return {
      sequences: num_sequences,
      useful_tokens,
      validation_sequences: validation?.finish().num_sequences ?? 0,
      without_targets: withoutTargets,
      targets,
    };
  }

  /** Closes both files and removes the temporary files. Idempotent. */
  close(): void {
    this.training.close();
    this.validation?.close();
  }

  private endUnit(): void {
    const { pending } = this;
    const file = this.choice?.has(this.unit) ? this.validation : this.training;
    const targets = pending.map(({ tokens, counts }) => countTargets(counts, 0, tokens.length, true));
    this.unit += 1;
    this.pending = [];
    if (targets.includes(0)) {
      this.withoutTargets += pending.length;
      return;
    }
    for (const { tokens, counts } of pending) {
      file?.sequence(file.numTokens);
      file?.append(tokens, counts, true);
    }
    this.targets += targets.reduce((sum, count) => sum + count, 0);
  }

  private nothingLeft(): ZerofleetError {
    const { shape, unit } = this.options;
    const leftOut = this.withoutTargets / this.unitSequences;
    const noun = unit === 'pair' ? 'pairs, because a completion of each' : 'completions, because each';
    return new ZerofleetError(
      'no_targets',
      `preparation left out ${leftOut} of ${this.unit} ${noun} has no target in the first ${shape.sequence_length + 1} tokens, and the ` +
        'training or the validation has none; set a larger train.sequence_length, or shorten the prompts',
    );
  }
}
