/** Main module of a thread that builds the prompts of rollouts, reads their samples, and writes calls. */
import { workerData } from 'node:worker_threads';
import type { Reinforcement } from '../../../../job-document/index.js';
import { serveTasks } from '../../../../platform/threads/serve-tasks.js';
import { SampleTexts, type TextSetup } from './sample-texts.js';
import { type Rewarded, type Sampled, SampledCalls, type SampleInput } from './sampled-calls.js';

export type TextTasks = typeof tasks;

export interface ThreadSetup extends TextSetup {
  settings: Reinforcement;
}

let made: { texts: SampleTexts; calls: SampledCalls } | null = null;
const opened = () => {
  if (made === null) {
    const { settings, ...setup } = workerData as ThreadSetup;
    const texts = new SampleTexts(setup);
    made = { texts, calls: new SampledCalls(texts, settings) };
  }
  return made;
};

const tasks = {
  /** Checks the prompts `[begin, end)`. Returns the number of all. */
  check({ begin, end }: { begin: number; end: number }): number {
    const { texts } = opened();
    for (let index = begin; index < Math.min(end, texts.count); index += 1) texts.prompt(index);
    return texts.count;
  },
  /** Returns the fields of prompts. */
  items: (prompts: readonly number[]) => prompts.map((index) => opened().texts.prompt(index).item),
  sampleCall: (input: SampleInput) => opened().calls.sampleCall(input),
  texts: (sampled: Sampled) =>
    opened()
      .calls.textsOf(sampled)
      .map(({ text }) => text),
  record: (input: Parameters<SampledCalls['record']>[0]) => opened().calls.record(input),
  metrics: (sampled: Rewarded) => opened().calls.metrics(sampled),
  pass: (input: Parameters<SampledCalls['pass']>[0]) => opened().calls.pass(input),
};

serveTasks(tasks);
