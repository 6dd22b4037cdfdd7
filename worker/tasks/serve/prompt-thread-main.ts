/** Main module of a thread that builds prompts. */
import { workerData } from 'node:worker_threads';
import type { PromptRequest } from '../../../contracts/index.js';
import { tokenizerOf } from '../../../formats/encoding/encode-batch.js';
import { serveTasks } from '../../../platform/threads/serve-tasks.js';
import { buildPrompt, type Decoding, type PromptSetup, type SamplePrompt } from './prompt.js';

export type PromptTasks = typeof tasks;

const setup = workerData as PromptSetup;
let tokenizer: ReturnType<typeof tokenizerOf> | null = null;

const tasks = {
  prompt(request: PromptRequest): SamplePrompt {
    tokenizer ??= tokenizerOf(setup);
    return buildPrompt(tokenizer, request, setup);
  },
  decoding(_: null): Decoding {
    tokenizer ??= tokenizerOf(setup);
    return { vocab_size: tokenizer.vocabSize, table: tokenizer.decoderTable };
  },
};

serveTasks(tasks);
