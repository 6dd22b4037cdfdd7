import { fork } from 'node:child_process';
import t from 'tap';
import type { Checkpoint } from '../../../contracts/index.js';
import { storeModel, testModel } from '../../../formats/testing/models.js';
import { until } from '../../../platform/testing/waiting.js';
import { takeSamples, testSample } from '../../../state/testing/samples.js';
import type { Fork } from '../../shared/child-processes.js';
import { Fleet } from '../../testing/fleet.js';
import { SampleClient } from '../../testing/samples.js';
import type { TestSpec } from '../../testing/start-message.js';

const MODEL = 'mdl_01J00000000000000000000000';

/** Running requests of a worker for one model, at most. */
const MAX_RUNNING_OF_MODEL = 86;

const neighbour = (text: string) => text.replace(/./g, (char) => String.fromCharCode(char.charCodeAt(0) ^ 1));

t.test('samples are drawn from the weights of a checkpoint', async (t) => {
  const fleet = await Fleet.start({ ranks: { step_ms: 5 }, text: 'text'.repeat(500) });
  t.teardown(() => fleet.close());
  let worker = await fleet.agent();
  const samples = new SampleClient(fleet);
  const sample = (checkpoint: Checkpoint) => samples.ask(checkpoint);
  const trained = async (ranks: number, data: TestSpec['data'] = {}) => {
    const id = await fleet.submit({ steps: 12, every_steps: 6, ranks, data });
    await fleet.untilState(id, 'succeeded');
    return (await fleet.store.listCheckpoints(id)).data as [Checkpoint, Checkpoint];
  };
  const [last, before] = await trained(2);
  const [alone] = await trained(1);

  const text = await sample(last);
  t.match(text, {
    ok: true,
    sample: {
      choices: [{ text: /^[0-9a-f]{64}$/, finish_reason: 'length' }],
      usage: { completion_tokens: 64 },
    },
  });
  t.same(await sample(alone), text, 'the number of ranks that saved it makes no difference');
  t.notSame(await sample(before), text, 'other weights, another text');
  const now = Date.now;
  t.teardown(() => {
    Date.now = now;
  });
  Date.now = () => now() + 3_600_000;
  t.same(await sample(last), text, "independent of the agent's clock");
  Date.now = now;

  t.test(
    "the job's tokenizer encodes the prompt and decodes the text, up to the end of the document",
    async (t) => {
      // Printable characters, each with the id of its neighbour; the id of "a" ends a document.
      const characters = Array.from({ length: 94 }, (_, index) => 33 + index).filter((id) => id !== 97);
      const tokenizer = {
        added_tokens: [{ id: 97, content: '</s>', special: true }],
        normalizer: null,
        pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: false },
        post_processor: null,
        decoder: { type: 'ByteLevel' },
        model: {
          type: 'BPE',
          vocab: {
            ...Object.fromEntries(characters.map((id) => [neighbour(String.fromCharCode(id)), id])),
            '</s>': 97,
          },
          merges: [],
        },
      };
      await fleet.store.putModel(testModel(MODEL));
      const files = new Map([
        ['tokenizer.json', Buffer.from(JSON.stringify(tokenizer))],
        ['tokenizer_config.json', Buffer.from(JSON.stringify({ eos_token: '</s>' }))],
      ]);
      await storeModel(fleet.objects, MODEL, files);
      const [encoded, unloaded] = await trained(1, { tokenizer: MODEL });
      const drawn = text.ok ? text.sample.choices[0]!.text.split('a')[0]! : '';
      t.match(await sample(encoded), {
        ok: true,
        sample: {
          choices: [{ text: neighbour(drawn), finish_reason: 'stop' }],
          usage: { completion_tokens: drawn.length + 1 },
        },
      });
      await fleet.objects.delete([`models/${MODEL}/tokenizer.json`]);
      t.match(await sample(unloaded), { ok: false, error: { code: 'model_not_found' } });
      t.match(await sample(encoded), { ok: true }, 'a loaded model goes on');
      const [numbers] = await trained(1, { tokenizer: null });
      t.match(await sample(numbers), { ok: false, error: { code: 'tokenizer_invalid' } });
    },
  );

  t.test('a request that a lost worker had is answered, however old it is', async (t) => {
    await worker.close();
    const id = await samples.add(last, {}, 1);
    const [taken] = await takeSamples(fleet.store, { worker: 'lost', hold_ms: 1 });
    t.equal(taken?.id, id);
    const later = (await fleet.store.now()) + 2;
    await until(async () => (await fleet.store.now()) > later);
    worker = await fleet.agent();
    t.same(await samples.reply(id), text);
  });

  t.test('a failed sample is a reply with an error', async (t) => {
    t.match(await samples.ask(last, {}, -1), { ok: false, error: { code: 'sample_timeout' } });
    const [damaged, other] = await trained(1);
    const lost = { ...other, job_id: 'job_00000000000000000000000000' };
    t.match(await sample(lost), { ok: false, error: { code: 'checkpoint_not_found' } });
    t.match(await sample(other), { ok: true }, 'a failed load is tried again');
    const [removed] = await trained(1);
    await fleet.store.deleteCheckpoint(removed.id);
    await fleet.objects.delete(await fleet.keys(removed.prefix));
    t.match(await sample(removed), { ok: false, error: { code: 'checkpoint_not_found' } });
    const shards = (await fleet.keys(damaged.prefix)).filter((key) => key.endsWith('.safetensors'));
    await fleet.objects.delete(shards.slice(0, 1));
    t.match(await sample(damaged), { ok: false, error: { code: 'object_not_found' } });
  });

  t.test('the server closes with the agent', async (t) => {
    await worker.close();
    await samples.add(alone);
    t.equal(await samples.waiting(), 1, 'the request stays in the queue');
  });
});

t.test('a stuck model leaves room to other projects, and frees its own when nobody waits', async (t) => {
  const fleet = await Fleet.start();
  t.teardown(() => fleet.close());
  let isStuck = false;
  const start: Fork = (program, args, options) => {
    const child = fork(program, args, options);
    if (isStuck) child.kill('SIGSTOP');
    return child;
  };
  await fleet.agent(4, { kill_ms: 500 }, {}, { fork: start });
  const id = await fleet.submit({ steps: 2 });
  await fleet.untilState(id, 'succeeded');
  const [checkpoint] = (await fleet.store.listCheckpoints(id)).data as [Checkpoint];
  isStuck = true;
  const samples = new SampleClient(fleet);
  const ids: string[] = [];
  for (let count = 0; count < 90; count++) ids.push(await samples.add(checkpoint));
  await until(async () => (await samples.waiting()) === 90 - MAX_RUNNING_OF_MODEL);

  await fleet.store.requestSample(testSample('other', { project: 'other', caller: 'other' }));
  await until(async () => (await fleet.store.findSamples(['other']))[0] === 'gone');
  t.match(await fleet.store.readMessages('other', null), [
    { message: { end: { ok: false, error: { code: 'model_not_found' } } } },
  ]);

  const states = await fleet.store.findSamples(ids);
  await Promise.all(
    ids.filter((_, at) => states[at] === 'taken').map((taken) => fleet.store.abandonSample(taken)),
  );
  await until(async () => (await fleet.store.countSamples('default')).taken === 90 - MAX_RUNNING_OF_MODEL);
  t.equal(await samples.waiting(), 0);
});
