import t from 'tap';
import type { Sample, SampleDelta } from '../../../contracts/types.js';
import { ApiError } from '../../typescript/errors.js';
import { type Answer, growing, WAITING } from './answer.js';

const sample = (text: string, completionTokens: number): Sample => ({
  model: 'ckpt_1',
  step: 7,
  prompt: 'Once',
  choices: [{ index: 0, text, finish_reason: 'length', logprobs: [] }],
  usage: { prompt_tokens: 1, cached_tokens: 0, completion_tokens: completionTokens },
});
const delta = (text: string): SampleDelta => ({ index: 0, text, logprobs: [] });

const refusal = (code: string, status: number) =>
  new ApiError(
    status,
    { type: '', title: code, status, detail: code, code, request_id: '', retryable: true, errors: [] },
    'sample',
    0,
  );

/** A clock that goes on by 100 ms when it is read. */
function clock(): () => number {
  let time = 0;
  return () => (time += 100);
}

async function all(answers: AsyncIterable<Answer>): Promise<Answer[]> {
  const found: Answer[] = [];
  for await (const answer of answers) found.push(answer);
  return found;
}

t.test('an answer grows, and tells its figures at the end', async (t) => {
  async function* ask() {
    yield delta(' upon');
    yield delta(' a');
    return sample(' upon a time', 5);
  }
  const answers = await all(growing(ask, new AbortController().signal, clock()));
  t.strictSame(
    answers.map(({ phase, text, first_ms }) => [phase, text, first_ms]),
    [
      ['waiting', '', null],
      ['writing', ' upon', 100],
      ['writing', ' upon a', 100],
      ['done', ' upon a time', 100],
    ],
  );
  t.strictSame(
    answers.at(-1)?.end,
    { tokens: 5, tokens_per_s: 20, finish_reason: 'length' },
    'four tokens after the first in 200 ms',
  );
});

t.test('one token has no rate', async (t) => {
  // biome-ignore lint/correctness/useYield: the answer has no text before its end
  async function* ask() {
    return sample('', 1);
  }
  const answers = await all(growing(ask, new AbortController().signal, clock()));
  t.equal(answers.at(-1)?.end?.tokens_per_s, null);
});

t.test('a model that is loading is asked again, and the time counts from then', async (t) => {
  let asked = 0;
  async function* ask() {
    asked += 1;
    if (asked < 3) throw refusal('model_loading', 503);
    yield delta('yes');
    return sample('yes', 1);
  }
  const answers = await all(growing(ask, new AbortController().signal, clock()));
  t.strictSame(
    answers.map(({ phase }) => phase),
    ['waiting', 'loading', 'loading', 'writing', 'done'],
  );
  t.equal(answers.at(-1)?.first_ms, 100);
});

t.test('another error ends it, with the text until then', async (t) => {
  const error = refusal('native_error', 500);
  async function* ask(): AsyncGenerator<SampleDelta, Sample> {
    yield delta('half');
    throw error;
  }
  const answers = await all(growing(ask, new AbortController().signal, clock()));
  t.strictSame(answers.at(-1), { ...WAITING, phase: 'failed', text: 'half', first_ms: 100, error });
});

t.test('a stopped answer keeps its text; one that is loading is stopped as well', async (t) => {
  const stopping = new AbortController();
  async function* ask(signal: AbortSignal): AsyncGenerator<SampleDelta, Sample> {
    yield delta('half');
    stopping.abort();
    signal.throwIfAborted();
    return sample('whole', 2);
  }
  const answers = await all(growing(ask, stopping.signal, clock()));
  t.match(answers.at(-1), { phase: 'stopped', text: 'half' });

  const loading = new AbortController();
  // biome-ignore lint/correctness/useYield: it is refused
  async function* refuse(): AsyncGenerator<SampleDelta, Sample> {
    throw refusal('model_loading', 503);
  }
  const phases: string[] = [];
  for await (const { phase } of growing(refuse, loading.signal)) {
    phases.push(phase);
    if (phase === 'loading') loading.abort();
  }
  t.strictSame(phases, ['waiting', 'loading', 'stopped']);
});
