/** 5,000 requests, most of them wrong somewhere: no server error, and answers of the shapes that the client's types say. */
import fc from 'fast-check';
import t from 'tap';
import { ADMIN_KEY, startTestStack } from '../../api/testing/stack.js';
import { servedCheckpoint } from '../../api/testing/training.js';
import type { SampleReply, Upload } from '../../contracts/index.js';
import { wrongShape } from './shapes.js';

const REQUESTS = 5_000;
const SEED = Number(process.env.ZEROFLEET_TEST_SEED ?? 20_261_127);

const answer: SampleReply = {
  ok: true,
  sample: {
    prompt: 'p',
    choices: [{ index: 0, text: 'yes', finish_reason: 'stop', logprobs: [] }],
    usage: { prompt_tokens: 1, cached_tokens: 0, completion_tokens: 1 },
  },
};

interface Request {
  method: 'GET' | 'POST' | 'DELETE';
  url: string;
  body: unknown;
}

/** A document with some fields replaced, left out or added. */
function mutated(document: object): fc.Arbitrary<unknown> {
  const names = Object.keys(document);
  const change = fc.record({
    name: fc.oneof(fc.constantFrom(...names), fc.string()),
    value: fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }),
  });
  return fc.array(change, { maxLength: 3 }).map((changes) => {
    const copy: Record<string, unknown> = { ...document };
    for (const { name, value } of changes) copy[name] = value;
    return copy;
  });
}

t.test('5,000 requests', async (t) => {
  const stack = await startTestStack({
    samples: {
      sample: async (_, __, { onStart }) => {
        onStart?.();
        return answer;
      },
    },
    limits: { requests_per_minute: 1_000_000_000 },
  });
  t.teardown(() => stack.close());
  const { job, checkpoint } = await servedCheckpoint(stack);
  const { dataset } = job.spec.data;

  const announced = { name: 'fuzz', format: 'jsonl', bytes: 9 };
  const upload = (
    await stack.request({ method: 'POST', url: '/v1/uploads', payload: announced })
  ).json<Upload>();

  const model = `ft:tiny:default::${checkpoint.id}`;
  const id = fc
    .oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          job.id,
          dataset,
          checkpoint.id,
          upload.id,
          model,
          `file-results-${job.id}`,
          'job_00000000000000000000000000',
        ),
      },
      { weight: 1, arbitrary: fc.string({ maxLength: 40 }) },
    )
    .map(encodeURIComponent);
  const chat = {
    model,
    messages: [{ role: 'user', content: 'is 2 even' }],
    max_tokens: 3,
    temperature: 1,
    stop: 'x',
    n: 1,
    stream: false,
    logprobs: true,
  };
  const completion = { model, prompt: 'is 2', max_tokens: 3, logprobs: 2, seed: 4, top_p: 0.5 };
  const training = {
    model,
    training_file: dataset,
    suffix: 'a',
    hyperparameters: { n_epochs: 1 },
    seed: 3,
    method: { type: 'supervised' },
  };
  const creation = {
    bytes: 9,
    filename: 'a.jsonl',
    mime_type: 'text/jsonl',
    purpose: 'fine-tune',
    expires_after: null,
  };
  const completion_of_upload = { part_ids: [`part_${'0'.repeat(26)}`], md5: '0'.repeat(32) };
  const query = fc
    .record(
      {
        limit: fc.oneof(fc.integer({ min: 1, max: 100 }).map(String), fc.string()),
        after: fc.oneof(id, fc.string()),
        order: fc.constantFrom('asc', 'desc'),
      },
      { requiredKeys: [] },
    )
    .map((fields) => `?${new URLSearchParams(fields as Record<string, string>)}`);
  const none = fc.constant(undefined);
  const call = (
    method: Request['method'],
    path: fc.Arbitrary<string>,
    body: fc.Arbitrary<unknown> = none,
  ): fc.Arbitrary<Request> =>
    fc.record({ method: fc.constant(method), url: path.map((of) => `/openai/v1${of}`), body });
  const at = (...paths: string[]) => fc.constantFrom(...paths);
  const wild = fc.record({
    method: fc.constantFrom('GET' as const, 'POST' as const, 'DELETE' as const),
    url: fc
      .oneof(fc.webPath(), at('/embeddings', '/responses', '/files', '/models'))
      .map((of) => `/openai/v1${of}`),
    body: fc.oneof(none, fc.jsonValue({ maxDepth: 2 })),
  });
  const requests = fc.oneof(
    { weight: 4, arbitrary: call('POST', at('/chat/completions'), mutated(chat)) },
    { weight: 3, arbitrary: call('POST', at('/completions'), mutated(completion)) },
    { weight: 2, arbitrary: call('POST', at('/fine_tuning/jobs'), mutated(training)) },
    { weight: 1, arbitrary: call('POST', at('/uploads'), mutated(creation)) },
    {
      weight: 1,
      arbitrary: call(
        'POST',
        fc.tuple(id, at('parts', 'complete', 'cancel')).map(([of, what]) => `/uploads/${of}/${what}`),
        mutated(completion_of_upload),
      ),
    },
    {
      weight: 3,
      arbitrary: call(
        'GET',
        fc.tuple(at('/files', '/models', '/fine_tuning/jobs'), query).map(([path, more]) => path + more),
      ),
    },
    {
      weight: 3,
      arbitrary: call(
        'GET',
        fc.tuple(at('/files/', '/models/', '/fine_tuning/jobs/'), id).map(([path, of]) => path + of),
      ),
    },
    {
      weight: 2,
      arbitrary: call(
        'GET',
        fc
          .tuple(id, at('events', 'checkpoints'), query)
          .map(([of, what, more]) => `/fine_tuning/jobs/${of}/${what}${more}`),
      ),
    },
    {
      weight: 1,
      arbitrary: call(
        'POST',
        fc.tuple(id, at('cancel', 'pause', 'resume')).map(([of, what]) => `/fine_tuning/jobs/${of}/${what}`),
      ),
    },
    {
      weight: 1,
      arbitrary: call(
        'DELETE',
        id.map((of) => `/models/${of}`),
      ),
    },
    { weight: 2, arbitrary: wild },
  );

  const statuses = new Map<number, number>();
  const findings: string[] = [];
  for (const { method, url, body: payload } of fc.sample(requests, { seed: SEED, numRuns: REQUESTS })) {
    const reply = await stack.app.inject({
      method,
      url,
      headers: {
        authorization: `Bearer ${ADMIN_KEY}`,
        ...(payload !== undefined && { 'content-type': 'application/json' }),
      },
      ...(payload !== undefined && method !== 'GET' && { payload: JSON.stringify(payload) }),
    });
    statuses.set(reply.statusCode, (statuses.get(reply.statusCode) ?? 0) + 1);
    const isJson = String(reply.headers['content-type']).startsWith('application/json');
    const wrong = isJson
      ? wrongShape(reply.statusCode, reply.json())
      : reply.statusCode >= 400
        ? 'an error that is not JSON'
        : null;
    if (reply.statusCode >= 500 || wrong !== null)
      findings.push(
        `${reply.statusCode} ${wrong} ${method} ${url} ${JSON.stringify(payload)} -> ${reply.payload.slice(0, 200)}`,
      );
  }
  t.strictSame(findings.slice(0, 10), [], `seed ${SEED}`);
  t.ok((statuses.get(200) ?? 0) > 500, `answers by status: ${JSON.stringify([...statuses])}`);
});
