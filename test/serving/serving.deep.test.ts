/** Answers of a real worker: equal bits in every case, and nothing that stays. */
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Sample, SampleDelta } from '../../contracts/index.js';
import { modelProcesses } from '../support/processes.js';
import { startStack } from '../support/stack.js';
import { tinyJob } from '../support/zero-specs.js';

const { client, pid } = await startStack(t);
const text = 'The fleet answers. '.repeat(300);
const { id: dataset } = await client.datasets.create('text', Buffer.from(text));

async function trained(name: string): Promise<string> {
  const { id } = await client.jobs.create(tinyJob({ name, dataset }));
  t.equal((await client.jobs.until(id, () => false)).state, 'succeeded');
  const [checkpoint] = await collect(client.jobs.checkpoints(id));
  return checkpoint?.id ?? '';
}

async function read(stream: AsyncGenerator<SampleDelta, Sample>) {
  const texts: string[] = [];
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return { texts, whole: value };
    texts[value.index] = (texts[value.index] ?? '') + value.text;
  }
}

const checkpoint = await trained('one');
const request = { prompt: 'The fleet', max_tokens: 48, temperature: 0.8, seed: 11 };

t.test('streamed, whole, several and among others: the same text', async (t) => {
  const whole = await client.samples.create(checkpoint, { ...request, logprobs: 2 });
  t.equal(whole.usage.completion_tokens, 48);
  t.equal(whole.choices[0]?.logprobs.length, 48);
  t.ok(
    whole.choices[0]?.logprobs.every(
      ({ logprob, top }) => logprob <= (top[0]?.logprob ?? -9) && top.length === 2,
    ),
  );
  const { texts, whole: streamed } = await read(
    client.samples.stream(checkpoint, { ...request, logprobs: 2 }),
  );
  t.equal(texts[0], whole.choices[0]?.text);
  t.strictSame(streamed.choices, whole.choices);
  const crowd = Array.from({ length: 24 }, (_, index) =>
    client.samples.create(checkpoint, { ...request, prompt: `${index} others`, seed: index }),
  );
  const several = await client.samples.create(checkpoint, { ...request, seed: 9, n: 4, logprobs: 2 });
  t.strictSame({ ...several.choices[2], index: 0 }, whole.choices[0], 'choice 2 has the seed plus 2');
  t.equal(new Set(several.choices.map((choice) => choice.text)).size, 4);
  t.equal((await Promise.all(crowd)).length, 24);
});

t.test('a text of stop ends the answer before it', async (t) => {
  const whole = await client.samples.create(checkpoint, request);
  const all = whole.choices[0]?.text ?? '';
  const stop = all.slice(20, 23);
  const { texts, whole: ended } = await read(client.samples.stream(checkpoint, { ...request, stop: [stop] }));
  t.equal(ended.choices[0]?.text, all.slice(0, all.indexOf(stop)));
  t.equal(texts[0], ended.choices[0]?.text, 'no part of it is told');
  t.equal(ended.choices[0]?.finish_reason, 'stop');
  t.ok(ended.usage.completion_tokens < whole.usage.completion_tokens);
});

t.test('a prompt that is too long', async (t) => {
  const prompt = 'word '.repeat(2000);
  await t.rejects(client.samples.create(checkpoint, { prompt }), { code: 'prompt_too_long' });
});

t.test('the process of a model is killed: the answer continues with the same text', async (t) => {
  const long = { ...request, max_tokens: 1_500 };
  const { whole: expected } = await read(client.samples.stream(checkpoint, long));
  const stream = client.samples.stream(checkpoint, long);
  const first = await stream.next();
  const [modelProcess] = modelProcesses(pid);
  t.ok(modelProcess);
  process.kill(modelProcess ?? Number.NaN, 'SIGKILL');
  const { texts, whole } = await read(stream);
  t.equal(`${(first.value as SampleDelta).text}${texts[0] ?? ''}`, expected.choices[0]?.text);
  t.strictSame(whole.choices, expected.choices);
  t.not(modelProcesses(pid)[0], modelProcess, 'another process answered');
});

t.test(
  '200 streams, of which half are left: nothing stays, and a training is as exact as ever',
  async (t) => {
    const other = await client.jobs.create(tinyJob({ name: 'beside', dataset }));
    const streams = Array.from({ length: 200 }, async (_, index) => {
      const stream = client.samples.stream(checkpoint, {
        ...request,
        max_tokens: 40,
        seed: index,
        prompt: `${index % 7} fleet`,
      });
      await stream.next();
      if (index % 2 === 0) {
        await stream.return(undefined as never);
        return null;
      }
      return (await read(stream)).whole.choices[0]?.text;
    });
    const texts = await Promise.all(streams);
    t.equal(texts.filter((answer) => answer !== null).length, 100);
    const again = await client.samples.create(checkpoint, {
      ...request,
      max_tokens: 40,
      seed: 21,
      prompt: `${21 % 7} fleet`,
    });
    t.equal(texts[21], again.choices[0]?.text);
    const ended = await client.jobs.until(other.id, () => false);
    const [one] = await collect(client.jobs.list({ name: 'one' }));
    t.equal(ended.export?.state_digest, one?.export?.state_digest);
  },
);
