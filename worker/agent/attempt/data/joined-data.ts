import { createHash } from 'node:crypto';
import type { Dataset, ResolvedJobSpec, Warning } from '../../../../contracts/index.js';
import type { EvaluationFile, TrainingFile } from '../../../../contracts/rank-protocol.js';
import {
  dataWarnings,
  evaluationsOf,
  longestSequence,
  sequencesOfUnit,
  trainingPointersOf,
  weightsOf,
} from '../../../../job-document/index.js';
import type { PreparedTokens } from '../../../tasks/data/prepare-tokens.js';

type Summary = PreparedTokens['summary'];

export interface PreparedDataset extends PreparedTokens {
  dataset: Dataset;
}

/** Files of a job's prepared datasets that ranks read, with a summary. */
export interface JoinedData {
  training_files: TrainingFile[];
  evaluation_files: EvaluationFile[];
  /** Number of training samples, which batches and epochs count. */
  samples: number;
  /** Digest of the content of the training datasets. */
  data_digest: string;
  /** Digest of all tokens, with its algorithm: `sha256:…`. */
  tokens_digest: string;
  /** Null without data. */
  summary: JoinedSummary | null;
}

/** Digest of no bytes. */
const NO_BYTES = `sha256:${createHash('sha256').digest('hex')}`;

/** Data of a session, which has none. */
export const NO_DATA: JoinedData = {
  training_files: [],
  evaluation_files: [],
  samples: 0,
  data_digest: NO_BYTES,
  tokens_digest: NO_BYTES,
  summary: null,
};

/** Summary of the training data as a whole, of the datasets of a mixture, and of those to evaluate on. */
type JoinedSummary = Summary & {
  /** Share of padding in the sequences of the training. */
  padding: number;
  mixture?: ({ dataset: string; share: number } & Summary)[];
  evaluation: ({ name: string; dataset: string } & Summary)[];
  warnings: Warning[];
};

/** @param training the datasets of the training, in their order; `evaluated` likewise */
export function joinData(
  { data, train, model }: Pick<ResolvedJobSpec, 'data' | 'train' | 'model'>,
  training: readonly PreparedDataset[],
  evaluated: readonly PreparedDataset[],
): JoinedData & { summary: JoinedSummary } {
  const samples = training.map(({ summary }) => summary.sequences / sequencesOfUnit(train));
  const weights = weightsOf(data, samples);
  const validation = training.map((each) => each.validation_file).filter((path) => path !== null);
  const evaluations = evaluated.map((each) => [each.token_file]);
  const paths = validation.length > 0 ? [validation, ...evaluations] : evaluations;
  return {
    training_files: training.map(({ token_file: path, summary }, i) => ({
      path,
      weight: weights[i] as number,
      useful_share: usefulShare(summary, train),
    })),
    evaluation_files: evaluationsOf({ data, train }).map((name, i) => ({ name, paths: paths[i] ?? [] })),
    samples: sum(samples),
    data_digest: digestOfAll(training.map(({ dataset }) => dataset.digest)),
    tokens_digest: digestOfAll([...training, ...evaluated].map((each) => each.tokens_digest)),
    summary: {
      ...total(training.map(({ summary }) => summary)),
      padding:
        1 -
        meanOf(
          training.map(({ summary }) => usefulShare(summary, train)),
          weights,
        ),
      ...(data.mixture && {
        mixture: training.map(({ dataset, summary }, i) => ({
          dataset: dataset.id,
          share: (weights[i] as number) / sum(weights),
          ...summary,
        })),
      }),
      evaluation: (train.evaluation?.datasets ?? []).map((entry, i) => ({
        ...entry,
        ...(evaluated[i] as PreparedDataset).summary,
      })),
      warnings: training.flatMap(({ dataset, summary }, i) =>
        dataWarnings(summary, longestSequence(model), {
          dataset: data.mixture ? dataset.id : null,
          pointer: trainingPointersOf(data)[i] as string,
        }),
      ),
    },
  };
}

/** Returns the share of a dataset's sequences that is no padding. */
function usefulShare({ sequences, useful_tokens }: Summary, train: ResolvedJobSpec['train']): number {
  return useful_tokens / (sequences * train.sequence_length);
}

function meanOf(values: readonly number[], weights: readonly number[]): number {
  return sum(values.map((value, i) => value * (weights[i] as number))) / sum(weights);
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/** The summary of one dataset is itself; that of several has no lines, which only a dataset has. */
function total(summaries: readonly Summary[]): Summary {
  const [first, ...others] = summaries;
  if (first === undefined) throw new Error('a job has training data');
  if (others.length === 0) return first;
  const sumOf = (count: (summary: Summary) => number) => sum(summaries.map(count));
  const flaws: Summary['flaws'] = {};
  for (const summary of summaries)
    for (const [flaw, { texts }] of Object.entries(summary.flaws) as [
      keyof typeof flaws,
      { texts: number },
    ][])
      flaws[flaw] = { texts: (flaws[flaw]?.texts ?? 0) + texts, first_line: null };
  return {
    documents: sumOf(({ documents }) => documents),
    tokens: sumOf(({ tokens }) => tokens),
    targets: sumOf(({ targets }) => targets),
    max_token: Math.max(...summaries.map(({ max_token }) => max_token)),
    long_documents: sumOf(({ long_documents }) => long_documents),
    flaws,
    sequences: sumOf(({ sequences }) => sequences),
    useful_tokens: sumOf(({ useful_tokens }) => useful_tokens),
    validation_sequences: sumOf(({ validation_sequences }) => validation_sequences),
    without_targets: sumOf(({ without_targets }) => without_targets),
  };
}

/** Returns the digest of several digests; that of one is itself. */
function digestOfAll(digests: readonly string[]): string {
  const [only = '', ...more] = digests;
  if (more.length === 0) return only;
  return `sha256:${createHash('sha256').update(digests.join('\n')).digest('hex')}`;
}
