/** Generates requests to OpenAI's routes, most of them wrong somewhere. Ids are tokens, which the run replaces. */
import fc, { type Arbitrary } from 'fast-check';
import type { GeneratedRequest } from '../property/requests.js';
import { idToken } from '../property/values.js';

type Method = 'GET' | 'POST' | 'DELETE';

const MODEL = `ft:tiny:default::${idToken('chat', 0)}`;
const CHAT = {
  model: MODEL,
  messages: [{ role: 'user', content: 'is 2 even' }],
  max_tokens: 3,
  temperature: 1,
  stop: 'x',
  n: 1,
  stream: false,
  logprobs: true,
};
const COMPLETION = { model: MODEL, prompt: 'is 2', max_tokens: 3, logprobs: 2, seed: 4, top_p: 0.5 };
const TRAINING = {
  model: MODEL,
  training_file: idToken('ds', 0),
  suffix: 'a',
  hyperparameters: { n_epochs: 1 },
  seed: 3,
  method: { type: 'supervised' },
};
const CREATION = {
  bytes: 9,
  filename: 'a.jsonl',
  mime_type: 'text/jsonl',
  purpose: 'fine-tune',
  expires_after: null,
};
const PARTS = { part_ids: [`part_${'0'.repeat(26)}`], md5: '0'.repeat(32) };

/** A document with some fields replaced, left out or added. */
function mutated(document: object): Arbitrary<string> {
  const names = Object.keys(document);
  const change = fc.record({
    name: fc.oneof(fc.constantFrom(...names), fc.string()),
    value: fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }),
  });
  return fc.array(change, { maxLength: 3 }).map((changes) => {
    const copy: Record<string, unknown> = { ...document };
    for (const { name, value } of changes) copy[name] = value;
    return JSON.stringify(copy);
  });
}

const at = (...paths: string[]) => fc.constantFrom(...paths);
const token = fc.nat({ max: 3 }).chain((n) => at('job', 'ds', 'chat', 'up').map((kind) => idToken(kind, n)));
const id = fc
  .oneof(
    { weight: 3, arbitrary: fc.oneof(token, at(MODEL, `file-results-${idToken('job', 0)}`, 'ftjob-abc')) },
    { weight: 1, arbitrary: fc.string({ maxLength: 40 }) },
  )
  .map(encodeURIComponent);
const query = fc
  .record(
    {
      limit: fc.oneof(fc.integer({ min: 1, max: 100 }).map(String), fc.string()),
      after: fc.oneof(id, fc.string()),
      order: at('asc', 'desc'),
    },
    { requiredKeys: [] },
  )
  .map((fields) => `?${new URLSearchParams(fields as Record<string, string>)}`);

/** One generator per route, or per group of routes. */
export function openaiRequests(): Map<string, Arbitrary<GeneratedRequest>> {
  const found = new Map<string, Arbitrary<GeneratedRequest>>();
  const add = (
    name: string,
    method: Arbitrary<Method>,
    path: Arbitrary<string>,
    body?: Arbitrary<string>,
  ) => {
    const operationId = `openai ${name}`;
    const content =
      body === undefined ? fc.constant(undefined) : fc.option(body, { nil: undefined, freq: 20 });
    const made = fc.record({ method, path, body: content }).map((request) => ({
      operationId,
      method: request.method,
      url: `/openai/v1${request.path}`,
      headers: request.body === undefined ? {} : { 'content-type': 'application/json' },
      body: request.body,
    }));
    found.set(operationId, made as Arbitrary<GeneratedRequest>);
  };
  const [get, post, remove] = (['GET', 'POST', 'DELETE'] as const).map((method) => fc.constant(method)) as [
    Arbitrary<Method>,
    Arbitrary<Method>,
    Arbitrary<Method>,
  ];
  add('chat', post, at('/chat/completions'), mutated(CHAT));
  add('completion', post, at('/completions'), mutated(COMPLETION));
  add('training', post, at('/fine_tuning/jobs'), mutated(TRAINING));
  add('upload', post, at('/uploads'), mutated(CREATION));
  const ofUpload = fc.tuple(id, at('parts', 'complete', 'cancel'));
  add(
    'of an upload',
    post,
    ofUpload.map(([of, what]) => `/uploads/${of}/${what}`),
    mutated(PARTS),
  );
  const lists = fc.tuple(at('/files', '/models', '/fine_tuning/jobs'), query);
  add(
    'lists',
    get,
    lists.map(([path, more]) => path + more),
  );
  const single = fc.tuple(at('/files/', '/models/', '/fine_tuning/jobs/'), id);
  add(
    'objects',
    get,
    single.map(([path, of]) => path + of),
  );
  const ofJob = fc.tuple(id, at('events', 'checkpoints'), query);
  add(
    'of a job',
    get,
    ofJob.map(([of, what, more]) => `/fine_tuning/jobs/${of}/${what}${more}`),
  );
  const acts = fc.tuple(id, at('cancel', 'pause', 'resume'));
  add(
    'acts on a job',
    post,
    acts.map(([of, what]) => `/fine_tuning/jobs/${of}/${what}`),
  );
  add(
    'deletion',
    remove,
    fc.tuple(at('/models/', '/files/'), id).map(([path, of]) => path + of),
  );
  const wild = fc.oneof(fc.webPath(), at('/embeddings', '/responses', '/files', '/models'));
  add(
    'anything',
    fc.oneof(get, post, remove),
    wild,
    fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  );
  return found;
}
