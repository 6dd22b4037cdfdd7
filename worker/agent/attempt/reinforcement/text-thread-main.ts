/** Main module of a thread that builds the prompts of rollouts and reads their samples. */
import { workerData } from 'node:worker_threads';
import { serveTasks } from '../../../../platform/threads/serve-tasks.js';
import { type DrawnSample, type LinePrompt, type SampleText, SampleTexts } from './sample-texts.js';

export type TextTasks = typeof tasks;

let made: SampleTexts | null = null;
const texts = () => {
  made ??= new SampleTexts(workerData);
  return made;
};

const tasks = {
  /** Checks the prompts `[begin, end)`. Returns the number of all. */
  check({ begin, end }: { begin: number; end: number }): number {
    const { count } = texts();
    for (let index = begin; index < Math.min(end, count); index += 1) texts().prompt(index);
    return count;
  },
  prompts(indices: number[]): LinePrompt[] {
    return indices.map((index) => texts().prompt(index));
  },
  samples(drawn: DrawnSample[]): SampleText[] {
    return drawn.map((sample) => texts().sample(sample));
  },
};

serveTasks(tasks);
