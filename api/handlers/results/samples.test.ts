import t from 'tap';
import type { Checkpoint, Page, Problem, SamplePayload, SampleReply } from '../../../contracts/index.js';
import { CHATS, startTestStack } from '../../testing/stack.js';
import { claimAndTrain } from '../../testing/training.js';

t.test('a sample of a checkpoint', async (t) => {
  const asked: [string, SamplePayload][] = [];
  let answer: SampleReply = { ok: true, sample: { prompt: 'to', completion: ' be', num_tokens: 3 } };
  const stack = await startTestStack({
    samples: {
      sample: async (pool, payload) => {
        asked.push([pool, payload]);
        return answer;
      },
    },
    limits: { sample_timeout_ms: 5_000 },
  });
  t.teardown(() => stack.close());
  const job = await stack.createJob();
  await claimAndTrain(stack.store, job.id, { steps: 7 });
  const page: Page<Checkpoint> = (await stack.request({ url: `/v1/jobs/${job.id}/checkpoints` })).json();
  const checkpoint = page.data[0] as Checkpoint;
  await stack.objects.put(`${checkpoint.prefix}/MANIFEST.json`, Buffer.from('{}'));
  const sample = (payload: object, id = checkpoint.id) =>
    stack.request({ method: 'POST', url: `/v1/checkpoints/${id}/sample`, payload });

  t.test('is sent to the pool of its job, with every option', async (t) => {
    const before = await stack.store.now();
    const reply = await sample({ prompt: 'to', temperature: 0.5, top_p: 0.9 });
    t.equal(reply.statusCode, 200);
    t.same(reply.json(), {
      checkpoint_id: checkpoint.id,
      step: 7,
      prompt: 'to',
      completion: ' be',
      num_tokens: 3,
    });
    const [pool, payload] = asked.at(-1) ?? [];
    t.equal(pool, 'default');
    t.match(payload, {
      job_id: job.id,
      checkpoint: { id: checkpoint.id, prefix: checkpoint.prefix },
      request: { prompt: 'to', max_tokens: 128, temperature: 0.5, top_k: 0, top_p: 0.9, seed: 1 },
    });
    const wait_ms = (payload?.expires_at ?? 0) - before;
    t.ok(wait_ms >= 5_000 && wait_ms < 60_000);
  });

  t.test('the average of the weights requires a job that keeps one', async (t) => {
    const refused = (await sample({ prompt: 'to', weights: 'ema' })).json<Problem>();
    t.match(refused, { status: 422, errors: [{ pointer: '/weights', code: 'ema_missing' }] });
  });

  t.test('messages require a job with a chat template', async (t) => {
    const { id: dataset } = await stack.upload(CHATS, 'jsonl');
    const chatty = await stack.createJob({ data: { dataset, chat_template: '{{ messages }}' } });
    await claimAndTrain(stack.store, chatty.id, { steps: 1 });
    const [other] = (await stack.store.listCheckpoints(chatty.id)).data as [Checkpoint];
    await stack.objects.put(`${other.prefix}/MANIFEST.json`, Buffer.from('{}'));
    const messages = [{ role: 'user', content: 'to?' }];
    answer = { ok: true, sample: { prompt: '[user]to?', completion: 'be', num_tokens: 2 } };
    const reply = await sample({ messages }, other.id);
    t.match(reply.json(), { prompt: '[user]to?', completion: 'be' });
    t.match(asked.at(-1)?.[1].request, { messages, max_tokens: 128 });
    const refused = (await sample({ messages })).json<Problem>();
    t.match(refused, { status: 422, errors: [{ pointer: '/messages', code: 'chat_template_missing' }] });
  });

  t.test('the error of a worker is returned', async (t) => {
    answer = { ok: false, error: { code: 'shard_corrupt', message: 'bytes of chunk 3 are wrong' } };
    t.equal((await sample({ prompt: 'to' })).statusCode, 500);
    answer = { ok: false, error: { code: 'no_such_code', message: 'the core says no' } };
    t.equal((await sample({ prompt: 'to' })).json<Problem>().code, 'native_error');
  });

  t.test('bad requests', async (t) => {
    const count = asked.length;
    const refused: [object, string][] = [
      [{}, ''],
      [{ prompt: 'to', messages: [{ role: 'user', content: 'to' }] }, ''],
      [{ messages: [] }, '/messages'],
      [{ messages: [{ role: 'user', content: 'to' }] }, '/messages'],
      [{ prompt: '' }, '/prompt'],
      [{ prompt: 'to', max_tokens: 0 }, '/max_tokens'],
      [{ prompt: 'to', temperature: -1 }, '/temperature'],
      [{ prompt: 'to', top_p: 0 }, '/top_p'],
      [{ prompt: 'to', top_q: 0 }, '/top_q'],
    ];
    for (const [payload, pointer] of refused) {
      const problem = (await sample(payload)).json<Problem>();
      t.match(problem, { code: 'validation_failed' });
      t.strictSame(
        problem.errors?.map((error) => error.pointer),
        [pointer],
        JSON.stringify(payload),
      );
    }
    t.equal(asked.length, count, 'no worker was called');
  });

  t.test('an unknown checkpoint', async (t) => {
    const none = await sample({ prompt: 'to' }, 'ckpt_00000000000000000000000000');
    t.equal(none.json<Problem>().code, 'checkpoint_not_found');
    await stack.objects.delete([`${checkpoint.prefix}/MANIFEST.json`]);
    t.equal((await sample({ prompt: 'to' })).json<Problem>().code, 'checkpoint_not_found');
  });
});
