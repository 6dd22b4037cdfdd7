/**
 * Main module of the thread that parses output of Slurm's commands: the queue of a large cluster has tens of megabytes.
 */
import { serveTasks } from '../../platform/threads/serve-tasks.js';
import { type JobRecord, parseQueue, parseRecords, type SlurmJob } from './job.js';
import { parseName } from './names.js';

export type ParserTasks = typeof tasks;

const textOf = (output: Uint8Array) => new TextDecoder().decode(output);

const tasks = {
  queue({ output, installation }: { output: Uint8Array; installation: string }): SlurmJob[] {
    return parseQueue(textOf(output), (name) => parseName(installation, name) !== null);
  },
  records({ output }: { output: Uint8Array }): JobRecord[] {
    return parseRecords(textOf(output));
  },
};

serveTasks(tasks);
