/** A worker is killed while it answers: the others go on with its answers, to the same texts. */
import t from 'tap';
import { collect } from '../../clients/typescript/index.js';
import type { Sample, SampleDelta } from '../../contracts/index.js';
import { until } from '../../platform/testing/waiting.js';
import { Cluster } from '../support/cluster.js';
import { modelProcesses } from '../support/processes.js';
import { tinyJob } from '../support/zero-specs.js';

const STREAMS = 40;

const cluster = await Cluster.start(t);
const { client } = cluster;
const lost = await cluster.agent({ slots: 1 });
const other = await cluster.agent({ slots: 1 });
const { id: dataset } = await client.datasets.create('text', Buffer.from('The fleet answers. '.repeat(300)));
const { id } = await client.jobs.create(tinyJob({ name: 'one', dataset }));
t.equal((await client.jobs.until(id, () => false)).state, 'succeeded');
const [checkpoint] = await collect(client.jobs.checkpoints(id));
const request = (seed: number) => ({ prompt: 'The fleet', max_tokens: 1_000, temperature: 0.8, seed });

interface Read {
  is_ended: boolean;
  begun: Promise<void>;
  ended: Promise<{ text: string; whole: Sample }>;
}

/** Reads a stream; its deltas make the text. */
function read(stream: AsyncGenerator<SampleDelta, Sample>): Read {
  const first = stream.next();
  const ended = (async () => {
    let text = '';
    for (let next = await first; ; next = await stream.next()) {
      if (next.done) return { text, whole: next.value };
      text += next.value.text;
    }
  })();
  const reading: Read = { is_ended: false, begun: first.then(() => undefined), ended };
  ended.then(() => (reading.is_ended = true)).catch(() => undefined);
  return reading;
}

t.test('streams of a killed worker go on with the same texts', async (t) => {
  const streams = Array.from({ length: STREAMS }, (_, seed) =>
    read(client.samples.stream(checkpoint?.id ?? '', request(seed))),
  );
  await Promise.race(streams.map(({ begun }) => begun));
  await until(() => modelProcesses(lost.pid).length === 1);
  process.kill(lost.pid, 'SIGKILL');
  t.ok(
    streams.some(({ is_ended }) => !is_ended),
    'some are still being written',
  );
  const answers = await Promise.all(streams.map(({ ended }) => ended));
  for (const [seed, { text, whole }] of answers.entries()) {
    t.equal(text, whole.choices[0]?.text);
    if (seed % 8 !== 0) continue;
    const again = await client.samples.create(checkpoint?.id ?? '', request(seed));
    t.strictSame(whole.choices, again.choices);
  }
  t.equal(modelProcesses(other.pid).length, 1);
});
