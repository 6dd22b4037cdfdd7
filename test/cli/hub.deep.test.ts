/**
 * From the Hugging Face Hub and back. A job begins with a model and data of the Hub, and its export is pushed there.
 * The document in the model card repeats the job to the same bits on another number of ranks.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { Job, JobSpec } from '../../contracts/index.js';
import { modelFolder } from '../../formats/testing/models.js';
import { HubStandIn } from '../../platform/testing/hub-stand-in.js';
import { acceptUploads } from '../../platform/testing/hub-uploads.js';
import { smallJob } from '../support/specs.js';
import { startStack } from '../support/stack.js';
import { commandLine } from './command-line.js';

const TOKEN = 'hf_0123456789abcdef';
const LINES = Array.from({ length: 200 }, (_, at) =>
  JSON.stringify({ text: `to be or not to be ${at * at}` }),
);

t.test('a job from the Hub, pushed to the Hub and repeated from its card', async (t) => {
  const hub = await HubStandIn.start();
  t.teardown(() => hub.close());
  const model = hub.commit('team/base', modelFolder({ shards: 2 }));
  const data = hub.commit('datasets/team/texts', new Map([['train.jsonl', Buffer.from(LINES.join('\n'))]]));
  Object.assign(hub.repositories.get('team/base') ?? {}, { token: TOKEN });
  const titles = acceptUploads(hub, TOKEN);
  const { client } = await startStack(t, { env: { ZEROFLEET_HUB_ENDPOINT: hub.endpoint } });
  const { baseUrl, apiKey } = client.options;
  const env = { ZEROFLEET_URL: baseUrl, ZEROFLEET_API_KEY: apiKey };
  const zerofleet = commandLine({ ...env, HF_TOKEN: TOKEN, HF_ENDPOINT: hub.endpoint });
  const dir = mkdtempSync(join(tmpdir(), 'zf-hub-'));
  t.teardown(() => rmSync(dir, { recursive: true }));

  const spec = (ranks: number): JobSpec => ({
    ...smallJob({ name: 'from the hub', dataset: '', steps: 6, ranks, every_steps: 3 }),
    labels: { secret: 'of the team' },
    model: { init_from: 'hf://team/base' },
    data: { uri: 'hf://datasets/team/texts/train.jsonl', format: 'jsonl', tokenizer: null },
  });
  const finish = async (id: string): Promise<Job> => {
    const job = await client.jobs.until(id, () => false);
    t.equal(job.state, 'succeeded', JSON.stringify(job.failure));
    return job;
  };
  const denied = {
    pointer: '/model/init_from',
    code: 'dataset_source_denied',
    message: /PUT \/v1\/hub-token/,
  };
  const refusal: unknown = await client.jobs.create(spec(2)).catch((error: unknown) => error);
  t.match(refusal, { problem: { errors: [denied] } }, 'the model is private');
  t.equal((await zerofleet(['hub-token', 'set'])).code, 0);
  const first = await finish((await client.jobs.create(spec(2))).id);
  t.strictSame(
    new Set(Object.values(first.spec.sources ?? {})),
    new Set([`hf://team/base@${model}`, `hf://datasets/team/texts@${data}/train.jsonl`]),
  );

  const pushed = await zerofleet(['--json', 'push', first.id, 'hf://team/tuned']);
  t.equal(pushed.code, 0, pushed.err);
  const { commit } = JSON.parse(pushed.out) as { commit: string };
  const files = hub.repositories.get('team/tuned')?.commits.get(commit);
  t.ok(files?.has('config.json') && files.has('model.safetensors') && files.has('tokenizer.json'));
  t.same(titles, [`Add step 6 of ${first.id} by zerofleet`]);
  const storage = hub.calls.filter(({ server, method }) => server === 'cdn' && method === 'PUT');
  t.ok(storage.length > 0 && storage.every(({ authorization }) => authorization === undefined));

  const card = files?.get('README.md')?.toString() ?? '';
  t.match(card, /base_model: team\/base\ndatasets: \[team\/texts\]\n/);
  t.match(card, first.export?.state_digest ?? 'none');
  t.notMatch(card, 'of the team');
  t.notMatch(card, TOKEN);
  const document = /```json\n([\s\S]*?)\n```/.exec(card)?.[1] ?? '';
  hub.commit('team/base', modelFolder({ shards: 2, dtype: 'F32' }));
  hub.commit('datasets/team/texts', new Map([['train.jsonl', Buffer.from('{"text": "other"}\n')]]));
  const repeated = JSON.parse(document) as JobSpec;
  t.match(repeated.model, { init_from: { uri: `hf://team/base@${model}` } });
  const submitted = await zerofleet(['--json', 'submit', '-', '--set', 'resources.ranks.preferred=3'], {
    stdin: document,
  });
  t.equal(submitted.code, 0, submitted.err);
  const again = await finish((JSON.parse(submitted.out) as Job).id);
  t.equal(again.export?.state_digest, first.export?.state_digest);

  const pushedModel = await client.models.register('tuned', 'hf://team/tuned');
  t.match(pushedModel.source, { uri: `hf://team/tuned@${commit}` }, 'what was pushed can be trained on');
  for (const [args, message] of [
    [['push', first.id, 'hf://datasets/a/b'], /hf:\/\/owner\/name/],
    [['push', first.id, 'team/tuned'], /hf:\/\/owner\/name/],
  ] as const) {
    const refused = await zerofleet([...args]);
    t.match(refused, { code: 2, err: message });
  }
  const without = await commandLine({ ...env, HF_ENDPOINT: hub.endpoint })([
    'push',
    first.id,
    'hf://team/tuned',
  ]);
  t.match(without, { code: 2, err: /HF_TOKEN/ });
  const wrong = await commandLine({ ...env, HF_TOKEN: 'hf_another_token', HF_ENDPOINT: hub.endpoint })([
    'push',
    first.id,
    'hf://team/tuned',
  ]);
  t.match(wrong, { code: 1, err: /HF_TOKEN must be a token that may write/ });
});
