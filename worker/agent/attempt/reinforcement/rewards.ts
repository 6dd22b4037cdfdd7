/** Rewards of the samples of a rollout: graded once, and read from then on. */
import {
  type CallResult,
  type Grade,
  type Grader,
  type Rollout,
  type RolloutSample,
  type SampledRow,
  ZerofleetError,
} from '../../../../contracts/index.js';
import { putOnce } from '../../../../formats/calls/call-log.js';
import { rewardsKey } from '../../../../formats/checkpoint/layout.js';
import type { Graders } from '../../../../graders/grader.js';
import {
  deviationOf,
  meanOf,
  type Reinforcement,
  type RewardedSample,
} from '../../../../job-document/index.js';
import { canonicalJson } from '../../../../platform/canonical-json.js';
import { getIfExists } from '../../../../platform/object-store/common/get-if-exists.js';
import type { ObjectStore } from '../../../../platform/object-store/common/port.js';
import type { LinePrompt, SampleText } from './sample-texts.js';

interface StoredRollout {
  rollout: Rollout;
  bytes: number;
}

/** Returns null if the samples have no rewards yet. */
export async function readRewards(
  objects: ObjectStore,
  jobId: string,
  number: number,
): Promise<StoredRollout | null> {
  const found = await getIfExists(objects, rewardsKey(jobId, number));
  return found && stored(found);
}

/** Stores the rewards. Returns those that count: rewards that exist stay. */
export async function putRewards(
  objects: ObjectStore,
  jobId: string,
  rollout: Rollout,
): Promise<StoredRollout> {
  const content = Buffer.from(canonicalJson(rollout));
  return stored((await putOnce(objects, rewardsKey(jobId, rollout.call), content)) ?? content);
}

function stored(content: Uint8Array): StoredRollout {
  return { rollout: JSON.parse(Buffer.from(content).toString('utf8')), bytes: content.length };
}

/** Returns the samples of a `sample` call. @throws ZerofleetError `internal_error`, `diverged` */
export function samplesIn(result: CallResult, number: number): SampledRow[] {
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

interface Graded {
  settings: Reinforcement;
  graders: Pick<Graders, 'grade'>;
  signal: AbortSignal;
}

/**
 * Grades the samples of a rollout, those of a prompt behind each other.
 * @throws ZerofleetError `grading_failed`; the signal's reason
 */
export async function grade(
  prompts: readonly LinePrompt[],
  texts: readonly SampleText[],
  { settings, graders, signal }: Graded,
): Promise<Rollout['groups']> {
  const { group_size: size, max_failed_share: limit } = settings;
  const grader = settings.grader as Grader;
  // An error that is none of a grader ends the other grades.
  const ended = new AbortController();
  const either = AbortSignal.any([signal, ended.signal]);
  const gradeOf = async (sample: SampleText, i: number) => {
    const { item = {} } = prompts[Math.floor(i / size)] ?? {};
    return graders.grade(grader, { item, sample: { output_text: sample.text } }, either);
  };
  const grades = await Promise.all(texts.map(gradeOf)).finally(() => ended.abort());
  const failed = grades.flatMap(({ errors }) => errors.slice(0, 1));
  if (failed.length > limit * texts.length) {
    const [{ grader: name, code, message } = { grader: '', code: '', message: '' }] = failed;
    throw new ZerofleetError(
      'grading_failed',
      `grading failed for ${failed.length} of ${texts.length} samples of a step, more than ` +
        `train.objective.max_failed_share ${limit} allows; the first by ${name}: ${code}: ${message}`,
    );
  }
  return prompts.map(({ line, text: prompt }, group) => ({
    line,
    prompt,
    samples: texts
      .slice(group * size, (group + 1) * size)
      .map((text, i) => rewarded(text, grades[group * size + i] as Grade)),
  }));
}

function rewarded(text: SampleText, { reward, scores, errors }: Grade): RolloutSample {
  return { ...text, reward, scores, errors };
}

/** Returns the metrics of the steps that use a rollout. */
export function rolloutMetrics(
  { groups }: Rollout,
  samples: readonly RewardedSample[],
): Record<string, number> {
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
