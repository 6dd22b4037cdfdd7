/** Sample requests from the settings that were entered. */
import type { Checkpoint, Job, Model, SampleRequest } from '../../../contracts/types.js';

type Message = NonNullable<SampleRequest['messages']>[number];

export interface Settings {
  mode: 'text' | 'chat';
  system: string;
  /** As entered; empty for the server's default. */
  max_tokens: string;
  temperature: string;
  top_p: string;
  top_k: string;
  seed: string;
  logprobs: boolean;
}

export const DEFAULT_SETTINGS: Settings = {
  mode: 'text',
  system: '',
  max_tokens: '128',
  temperature: '1',
  top_p: '1',
  top_k: '0',
  seed: '1',
  logprobs: true,
};

/** Names of the settings that are numbers. */
export const NUMBERS = ['max_tokens', 'temperature', 'top_p', 'top_k', 'seed'] as const;

/** Likely tokens that are shown in place of one. */
const ALTERNATIVES = 5;

/**
 * Returns the request for a text or for the next turn of a chat.
 * @param turns messages until now
 * @param template chat template in place of the model's own
 */
export function requestFor(
  settings: Settings,
  prompt: string,
  turns: readonly Message[],
  template?: string,
): Omit<SampleRequest, 'stream'> {
  const { mode, system, logprobs } = settings;
  const numbers = NUMBERS.filter((name) => settings[name].trim() !== '').map((name) => [
    name,
    Number(settings[name]),
  ]);
  const options = { ...Object.fromEntries(numbers), ...(logprobs && { logprobs: ALTERNATIVES }) };
  if (mode === 'text') return { prompt, ...options };
  const first = system === '' ? [] : [{ role: 'system', content: system }];
  const messages = [...first, ...turns, { role: 'user', content: prompt }];
  return { messages, ...(template !== undefined && { chat_template: template }), ...options };
}

export interface Choice {
  id: string;
  label: string;
}

/** Models and checkpoints that can answer: a tokenizer alone and damaged checkpoints cannot. */
export function choicesOf(
  models: readonly Pick<Model, 'id' | 'name' | 'model_type'>[],
  checkpoints: readonly Pick<Checkpoint, 'id' | 'job_id' | 'step' | 'damaged'>[],
  jobs: readonly Pick<Job, 'id' | 'name'>[],
): Choice[] {
  const names = new Map(jobs.map(({ id, name }) => [id, name]));
  return [
    ...models
      .filter(({ model_type }) => model_type !== null)
      .map(({ id, name }) => ({ id, label: `${name}, uploaded` })),
    ...checkpoints
      .filter(({ damaged }) => !damaged)
      .map(({ id, job_id, step }) => ({ id, label: `${names.get(job_id) || job_id}, step ${step}` })),
  ];
}

/** How likely a token was, from 0 (hardly) to 4 (almost certain): its colour. */
export function likelihood(logprob: number): number {
  const bounds = [0.05, 0.25, 0.6, 0.9];
  return bounds.filter((bound) => Math.exp(logprob) >= bound).length;
}

/** A probability as people read it. */
export function percent(logprob: number): string {
  const value = 100 * Math.exp(logprob);
  return value < 0.1 ? '< 0.1 %' : `${value.toFixed(1)} %`;
}
