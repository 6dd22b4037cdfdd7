/**
 * Generates requests to OpenAI's routes, valid ones and ones that are wrong somewhere. Ids are tokens, which the run
 * replaces.
 */
import fc, { type Arbitrary } from 'fast-check';
import type { GeneratedRequest } from '../property/requests.js';
import { idToken } from '../property/values.js';

type Method = 'GET' | 'POST' | 'DELETE';

const MODEL = `ft:tiny:default::${idToken('chat', 0)}`;
const BASE = idToken('base', 0);
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
  model: BASE,
  training_file: idToken('chats', 0),
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
const PARTS = { part_ids: [idToken('part', 0)], md5: null };
/** A form with one part of an upload. */
export const FORM = {
  type: 'multipart/form-data; boundary=zf',
  of: (content: string) =>
    `--zf\r\ncontent-disposition: form-data; name="data"; filename="part"\r\n\r\n${content}\r\n--zf--\r\n`,
};

/** A document, or one with some fields replaced, left out or added. */
function mutated(document: object): Arbitrary<string> {
  const names = Object.keys(document);
  const change = fc.record({
    name: fc.oneof(fc.constantFrom(...names), fc.string()),
    value: fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }),
  });
  const changed = fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) => {
    const copy: Record<string, unknown> = { ...document };
    for (const { name, value } of changes) copy[name] = value;
    return JSON.stringify(copy);
  });
  return fc.oneof(fc.constant(JSON.stringify(document)), changed);
}

const at = (...paths: string[]) => fc.constantFrom(...paths);
const OTHER = [MODEL, 'ftjob-abc', ...['job', 'ds', 'chat', 'upl'].map((kind) => idToken(kind, 0))];

/** Ids of objects that a route has, for the most part. */
const idsOf = (...known: ((n: number) => string)[]) =>
  fc
    .oneof(
      { weight: 8, arbitrary: fc.nat({ max: 9 }).chain((n) => at(...known.map((idOf) => idOf(n)))) },
      { weight: 1, arbitrary: at(...OTHER) },
      { weight: 1, arbitrary: fc.string({ maxLength: 40 }) },
    )
    .map(encodeURIComponent);
const nthId = (kind: string) => (n: number) => idToken(kind, n);
const ids = {
  files: idsOf(nthId('chats'), nthId('ds'), (n) => `file-results-${idToken('job', n)}`),
  models: idsOf(nthId('base'), (n) => `ft:tiny:default::${idToken('chat', n)}`),
  jobs: idsOf(nthId('job')),
  uploads: idsOf(nthId('parted'), nthId('parted'), nthId('upl')),
};
const PATHS = { files: '/files', models: '/models', jobs: '/fine_tuning/jobs' };

/** A query of a list, which may begin after an entry. */
const query = (after: Arbitrary<string>) =>
  fc
    .record(
      {
        limit: fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 100 }).map(String) }, fc.string()),
        after: fc.oneof({ weight: 3, arbitrary: after }, fc.string()),
        order: at('asc', 'desc'),
      },
      { requiredKeys: [] },
    )
    .map((fields) => `?${new URLSearchParams(fields as Record<string, string>)}`);
const mostly = (text: string, other: Arbitrary<string>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(text) }, other);

/** One generator per route, or per group of routes. */
export function openaiRequests(): Map<string, Arbitrary<GeneratedRequest>> {
  const found = new Map<string, Arbitrary<GeneratedRequest>>();
  const add = (
    name: string,
    method: Arbitrary<Method>,
    path: Arbitrary<string>,
    body?: Arbitrary<string>,
    type = 'application/json',
  ) => {
    const operationId = `openai ${name}`;
    const content =
      body === undefined ? fc.constant(undefined) : fc.option(body, { nil: undefined, freq: 20 });
    const made = fc.record({ method, path, body: content }).map((request) => ({
      operationId,
      method: request.method,
      url: `/openai/v1${request.path}`,
      headers: request.body === undefined ? {} : { 'content-type': type },
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
  add(
    'parts of an upload',
    post,
    ids.uploads.map((id) => `/uploads/${id}/parts`),
    fc.oneof(fc.string().map(FORM.of), fc.string()),
    FORM.type,
  );
  add(
    'of an upload',
    post,
    fc
      .tuple(ids.uploads, at('complete', 'complete', 'cancel'))
      .map(([id, action]) => `/uploads/${id}/${action}`),
    mutated(PARTS),
  );
  const kinds = Object.keys(PATHS) as (keyof typeof PATHS)[];
  const oneOf = (pathOf: (kind: keyof typeof PATHS) => Arbitrary<string>, chosenKinds = kinds) =>
    fc.constantFrom(...chosenKinds).chain(pathOf);
  add(
    'lists',
    get,
    oneOf((kind) => mostly('', query(ids[kind])).map((more) => PATHS[kind] + more)),
  );
  const objects = (kind: keyof typeof PATHS) => ids[kind].map((id) => `${PATHS[kind]}/${id}`);
  add('objects', get, oneOf(objects));
  add(
    'contents',
    get,
    ids.files.map((id) => `/files/${id}/content`),
  );
  add(
    'of a job',
    get,
    fc
      .tuple(objects('jobs'), at('events', 'checkpoints'), mostly('', query(ids.jobs)))
      .map(([path, action, more]) => `${path}/${action}${more}`),
  );
  add(
    'acts on a job',
    post,
    fc.tuple(objects('jobs'), at('cancel', 'pause', 'resume')).map(([path, action]) => `${path}/${action}`),
  );
  add('deletion', remove, oneOf(objects, ['models', 'files']));
  const wild = fc.oneof(fc.webPath(), at('/embeddings', '/responses', '/files', '/models'));
  add(
    'anything',
    fc.oneof(get, post, remove),
    wild,
    fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  );
  return found;
}
