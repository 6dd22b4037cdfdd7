/** Requests that no client sends, or that a key may not send. */
import { connect } from 'node:net';
import t from 'tap';
import { createLogger } from '../../platform/logging/logging.js';
import { createSession } from '../testing/sessions.js';
import { ADMIN_KEY } from '../testing/stack.js';
import { startTinker } from '../testing/tinker.js';

const POSTS = [
  'create_model',
  'get_info',
  'unload_model',
  'forward_backward',
  'optim_step',
  'save_weights',
  'save_weights_for_sampler',
  'load_weights',
  'create_sampling_session',
  'asample',
  'retrieve_future',
];

t.test('requests that are refused', async (t) => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ level: 'info', name: 'api', destination });
  const tinker = await startTinker(t, { log, limits: { json_body_timeout_ms: 100 } });
  const { stack, send, post, create, pass, wait, createSampler, sampleOf } = tinker;
  const { app } = stack;
  const key = { 'x-api-key': `tml-${ADMIN_KEY}` };

  t.test('bodies that a route does not read', async (t) => {
    for (const path of POSTS) {
      const url = `/tinker/api/v1/${path}`;
      const empty = await app.inject({ method: 'POST', url, headers: key });
      t.equal(empty.statusCode, 400, `${path} without a body: ${empty.body}`);
      for (const type of ['application/octet-stream', 'text/plain', 'application/x-tar']) {
        const reply = await send(path, Buffer.from('a'), type);
        t.match([reply.statusCode, reply.json()], [415, { error: { message: /send the body as/ } }], path);
      }
    }
    const other = await send('create_model', Buffer.from('a'), 'application/x-protobuf');
    t.equal(other.statusCode, 415, 'bodies in protobuf are read by the passes alone');
  });

  t.test('a pass that never arrives', async (t) => {
    const { port } = new URL(await stack.listen());
    const socket = connect(Number(port), '127.0.0.1').setEncoding('utf8');
    const head = [
      'POST /tinker/api/v1/forward_backward HTTP/1.1',
      'host: x',
      `x-api-key: tml-${ADMIN_KEY}`,
      'content-type: application/x-protobuf',
      'content-length: 100',
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\na`);
    let text = '';
    for await (const piece of socket) text += piece;
    t.match(text, /^HTTP\/1.1 408[\s\S]*"code":"request_timeout"/);
  });

  t.test('ids that the server has not given', async (t) => {
    const id = await create(1);
    const { request_id: step } = await post('optim_step', { model_id: id, seq_id: 1, adam_params: {} });
    await wait(step);
    const sampled = await post('asample', sampleOf(await createSampler(id), 0));
    await wait(sampled.request_id);
    const forged = [
      `${id}.0.pass.0`,
      `${id}.1.step.1`,
      `${id}..step.0`,
      `${id}.1e0.step.0`,
      `${id}.-1.step.0`,
      `${id}.2.sample.9`,
      `${id}.2.sample.1`,
      `${id}.1.other.0`,
      `${id}.1`,
      'a',
    ];
    for (const requestId of forged) {
      const reply = await wait(requestId);
      t.match([reply.statusCode, reply.json()], [400, { error: { code: 'invalid_parameter' } }], requestId);
    }
    t.equal((await wait(`${id}.9.step.0`)).statusCode, 404);
  });

  t.test('labels are those of a model', async (t) => {
    const name = 'b:train:0';
    await createSession(stack, { labels: { 'tinker/model': name } });
    await stack.createJob({ labels: { 'tinker/model': name, 'tinker/base_model': 'gpt2' } });
    for (const model of [name, 'a'.repeat(255)])
      t.equal((await send('get_info', { model_id: model })).statusCode, 404);
    t.equal((await pass('a'.repeat(10_000), 'ppo')).body.includes('a'.repeat(300)), false);
    const create = (metadata: object, base = 'llama-tiny') =>
      post('create_model', { session_id: 'c', model_seq_id: 0, base_model: base, user_metadata: metadata });
    t.match(await create({ 'tinker/model': name }), {
      error: { param: 'user_metadata', message: /tinker\// },
    });
    t.match(await create({ team: 'a'.repeat(300) }), { error: { param: 'user_metadata.team' } });
    t.match(await create({}, 'a'.repeat(256)), { error: { param: 'base_model' } });
    t.match(await create({ team: 'a' }), { model_id: /^job_/ });
  });

  t.test('errors name the parameters of this API, and are logged once', async (t) => {
    const id = await create(2);
    lines.length = 0;
    const refused = await post('optim_step', { model_id: id, seq_id: 1, adam_params: { learning_rate: -1 } });
    t.match(refused, { error: { code: 'validation_failed', param: 'adam_params.learning_rate' } });
    t.match(await pass(id, 'dro').then((reply) => reply.json()), { error: { param: 'loss_fn' } });
    const load = { model_id: id, seq_id: 1, path: `tinker://${id}/weights/0`, optimizer: true };
    t.match(await post('load_weights', load), { error: { code: 'checkpoint_not_found', param: 'path' } });
    t.equal(lines.filter((line) => line.includes('request refused')).length, 3);
    const { path: _, ...rest } = load;
    t.match(await post('load_weights', { ...rest, path: 'a', base_model: 'gpt2' }), {
      error: { param: 'base_model' },
    });
  });
});

t.test('rights', async (t) => {
  const { stack, send, create, createSampler, sampleOf, pass } = await startTinker(t);
  const id = await create();
  const sampler = await createSampler(id);
  const secretOf = ({ authorization }: { authorization: string }) => authorization.replace('Bearer ', '');
  const bodies: Record<string, object> = {
    create_model: { session_id: 'a', model_seq_id: 1, base_model: 'llama-tiny' },
    get_info: { model_id: id },
    unload_model: { model_id: id },
    optim_step: { model_id: id, seq_id: 1, adam_params: {} },
    save_weights: { model_id: id, seq_id: 1 },
    save_weights_for_sampler: { model_id: id, seq_id: 1 },
    load_weights: { model_id: id, seq_id: 1, path: `tinker://${id}/weights/1`, optimizer: true },
    create_sampling_session: {
      session_id: 'a',
      sampling_session_seq_id: 0,
      model_path: `tinker://${id}/weights/1`,
    },
    asample: sampleOf(sampler, 0),
    retrieve_future: { request_id: `${id}.1.step.0` },
  };
  const reading = ['get_info', 'create_sampling_session', 'retrieve_future'];
  const statusOf = async (path: string, key: string) =>
    (await send(path, bodies[path] ?? {}, 'application/json', key)).statusCode;

  t.test('a key needs the scopes of the operation', async (t) => {
    const [reads, other] = [await stack.headersOf('jobs:read'), await stack.headersOf('datasets')];
    for (const path of Object.keys(bodies)) {
      t.equal(await statusOf(path, secretOf(other)), 403, path);
      if (!reading.includes(path)) t.equal(await statusOf(path, secretOf(reads)), 403, path);
    }
  });

  t.test('models of another project do not exist', async (t) => {
    const theirs = secretOf(await stack.headersIn('team-b'));
    const own = ['create_model'];
    for (const path of Object.keys(bodies))
      if (!own.includes(path)) t.equal(await statusOf(path, theirs), 404, path);
  });

  t.test('a share reads its own model', async (t) => {
    const shareOf = async (job: string): Promise<string> =>
      (await stack.request({ method: 'POST', url: `/v1/jobs/${job}/shares` })).json().token;
    const [own, other] = [await shareOf(id), await shareOf(await create(1))];
    t.equal(await statusOf('get_info', own), 200);
    t.equal(await statusOf('get_info', other), 404);
    for (const path of Object.keys(bodies))
      if (path !== 'get_info') t.not(await statusOf(path, own), 200, path);
  });

  t.equal(await stack.store.getCalls(id), null, 'nothing is stored');

  t.test('the header of the key is one of this API alone', async (t) => {
    const headers = { 'x-api-key': `tml-${ADMIN_KEY}` };
    for (const url of ['/openai/v1/models', '/v1/jobs'])
      t.equal((await stack.app.inject({ url, headers })).statusCode, 401, url);
    t.equal((await pass(id, 'cross_entropy')).statusCode, 200);
  });
});
