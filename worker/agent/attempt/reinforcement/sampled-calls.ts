import type {
  CallResult,
  Grade,
  Rollout,
  RolloutSample,
  SampledRow,
  StoredCall,
} from '../../../../contracts/index.js';
import { ZerofleetError } from '../../../../contracts/index.js';
import { callText } from '../../../../formats/calls/call-log.js';
import {
  deviationOf,
  meanOf,
  type Reinforcement,
  type RewardedSample,
  rewardedSamples,
  rowsOf,
} from '../../../../job-document/index.js';
import { canonicalJson } from '../../../../platform/canonical-json.js';
import type { SampleText, SampleTexts } from './sample-texts.js';

type SampleCall = Extract<StoredCall, { type: 'sample' }>;

/** A `sample` call with its result. */
export interface Sampled {
  /** Number of the call. */
  number: number;
  /** Indices of its prompts. */
  prompts: readonly number[];
  /** JSON of the result. */
  result: SharedArrayBuffer;
}

/** Samples with their rewards: JSON of the `Rollout`. */
export interface Rewarded extends Sampled {
  rewards: SharedArrayBuffer;
}

/** Bytes of JSON. A field, because messages of threads transfer only those. */
export interface Content {
  content: Uint8Array<ArrayBuffer>;
}

/** Prompts of a call, and how they are sampled. */
export type SampleInput = Pick<Sampled, 'prompts'> &
  Omit<SampleCall, 'type' | 'prompts' | 'stop_tokens' | 'stop_texts'>;

/**
 * Calls and records of rewards, made of prompts, samples and grades. They may have many megabytes, so a thread makes
 * them.
 */
export class SampledCalls {
  /** The call of the last task. */
  private last: { number: number; samples: SampledRow[]; texts?: SampleText[]; rows?: Rows } | null = null;

  constructor(
    private readonly texts: SampleTexts,
    private readonly settings: Reinforcement,
  ) {}

  sampleCall({ prompts, ...sampling }: SampleInput): Content {
    const found = prompts.map((index) => this.texts.prompt(index));
    const stops = new Set(found.flatMap(({ end_tokens }) => end_tokens));
    return contentOf(
      callText({
        type: 'sample',
        prompts: found.map(({ tokens }) => tokens),
        ...sampling,
        stop_tokens: [...stops].sort((a, b) => a - b),
        // Graders read a sample up to the text that ends it.
        stop_texts: [],
      }),
    );
  }

  /** Returns the samples' texts. @throws ZerofleetError `internal_error`, `diverged` */
  textsOf(sampled: Sampled): SampleText[] {
    const { prompts } = sampled;
    const { samples, ...last } = this.samplesOf(sampled);
    const texts =
      last.texts ??
      samples.map(({ tokens, finish }, i) => {
        const { tokens: prompt, end_text } = this.texts.prompt(promptOf(prompts, i, samples.length));
        return this.texts.sample({ prompt, end_text, tokens, finish });
      });
    this.last = { ...last, samples, texts };
    return texts;
  }

  /** @param step first step that uses the samples */
  record({ step, grades, ...sampled }: Sampled & { step: number; grades: readonly Grade[] }): Content {
    const texts = this.textsOf(sampled);
    const size = texts.length / sampled.prompts.length;
    const groups = sampled.prompts.map((index, group) => {
      const { line, text: prompt } = this.texts.prompt(index);
      const samples = texts
        .slice(group * size, (group + 1) * size)
        .map((text, i) => rewarded(text, grades[group * size + i] as Grade));
      return { line, prompt, samples };
    });
    return contentOf(canonicalJson({ step, call: sampled.number, groups } satisfies Rollout));
  }

  /** Returns the metrics of the steps that use the samples. */
  metrics(sampled: Rewarded): Record<string, number> {
    const rollout = jsonOf<Rollout>(sampled.rewards);
    return rolloutMetrics(rollout, rewardedSamples(rollout, [], this.samplesOf(sampled).samples));
  }

  /** Returns the pass of the samples `[begin, end)`. */
  pass({ begin, end, ...sampled }: Rewarded & { begin: number; end: number }): Content {
    const { samples, ...last } = this.samplesOf(sampled);
    const rows = last.rows ?? this.rowsOf(sampled, samples);
    this.last = { ...last, samples, rows };
    const { loss } = this.settings;
    return contentOf(callText({ type: 'forward_backward', loss, rows: rows.slice(begin, end) }));
  }

  private rowsOf({ prompts, rewards }: Rewarded, samples: readonly SampledRow[]): Rows {
    const tokens = prompts.map((index) => this.texts.prompt(index).tokens);
    return rowsOf(rewardedSamples(jsonOf(rewards), tokens, samples), this.settings);
  }

  private samplesOf({ number, result }: Sampled) {
    if (this.last?.number !== number)
      this.last = { number, samples: samplesIn(jsonOf<CallResult>(result), number) };
    return this.last;
  }
}

type Rows = ReturnType<typeof rowsOf>;

/** Returns the index of a sample's prompt; those of a prompt stand behind each other. */
function promptOf(prompts: readonly number[], sample: number, samples: number): number {
  return prompts[Math.floor((sample * prompts.length) / samples)] ?? 0;
}

function jsonOf<T>(content: SharedArrayBuffer): T {
  return JSON.parse(Buffer.from(content).toString('utf8'));
}

function contentOf(text: string): Content {
  return { content: new TextEncoder().encode(text) };
}

/** Returns the samples of a `sample` call. @throws ZerofleetError `internal_error`, `diverged` */
function samplesIn(result: CallResult, number: number): SampledRow[] {
  if ('error' in result) {
    const { code, message } = result.error;
    throw new ZerofleetError('internal_error', `call ${number} was not done: ${code}: ${message}`);
  }
  if (!('samples' in result)) throw new ZerofleetError('internal_error', `call ${number} has no samples`);
  if (result.samples.every(({ log_probs }) => !log_probs.includes(null))) return result.samples;
  throw new ZerofleetError(
    'diverged',
    `a sample of call ${number} has a log-probability that is not finite; lower train.optimizer.lr`,
  );
}

function rewarded(text: SampleText, { reward, scores, errors }: Grade): RolloutSample {
  return { ...text, reward, scores, errors };
}

/** Returns the metrics of the steps that use a rollout. */
function rolloutMetrics({ groups }: Rollout, samples: readonly RewardedSample[]): Record<string, number> {
  const all = groups.flatMap((group) => group.samples);
  const rewards = all.map(({ reward }) => reward);
  const shareOf = <T>(items: readonly T[], is: (item: T) => boolean) =>
    meanOf(items.map((item) => Number(is(item))));
  const isEqual = ({ samples: [first, ...others] }: Rollout['groups'][number]) =>
    others.every(({ reward }) => reward === first?.reward);
  const names = [...new Set(all.flatMap(({ scores }) => Object.keys(scores)))];
  return {
    reward: meanOf(rewards),
    reward_std: deviationOf(rewards),
    tokens: meanOf(all.map(({ tokens }) => tokens)),
    truncated_share: shareOf(all, ({ truncated }) => truncated),
    failed_share: shareOf(all, ({ errors }) => errors.length > 0),
    equal_groups: shareOf(groups, isEqual),
    entropy: -meanOf(samples.flatMap(({ log_probs }) => log_probs.map((value) => value ?? 0))),
    ...Object.fromEntries(
      names.map((name) => [`score/${name}`, meanOf(all.map(({ scores }) => scores[name] ?? 0))]),
    ),
  };
}
