/** Result files of long jobs with repeated steps: a line for each step, the size without reading them. */
import OpenAI from 'openai';
import t from 'tap';
import { ADMIN_KEY, startTestStack } from '../../testing/stack.js';
import { claimAndTrain, metricOf } from '../../testing/training.js';

const STEPS = 3000;

t.test('a result file has the newest line of each step, and its size is known without them', async (t) => {
  let read = 0;
  const stack = await startTestStack({
    wrap: ({ store }) => ({
      store: Object.assign(Object.create(store), {
        readMetrics: async (...args: Parameters<typeof store.readMetrics>) => {
          const metrics = await store.readMetrics(...args);
          read += metrics.length;
          return metrics;
        },
      }),
    }),
  });
  t.teardown(() => stack.close());
  const job = await stack.createJob({ train: { steps: STEPS } });
  const execution = await claimAndTrain(stack.store, job.id, { steps: 1 });
  const lines = new Map<number, string>([[1, `1,${metricOf(1).loss},\n`]]);
  const report = async (from: number, to: number, factor: number) => {
    const steps = Array.from({ length: to - from + 1 }, (_, i) => {
      const step = from + i;
      const loss = step % 7 === 0 ? null : factor / step;
      return {
        ...metricOf(step),
        loss,
        ...(step % 50 === 0 && { eval_losses: { validation_file: factor * step } }),
      };
    });
    for (const { step, loss, eval_losses } of steps)
      lines.set(step, `${step},${loss ?? ''},${eval_losses?.validation_file ?? ''}\n`);
    await stack.store.report(job.id, execution, steps, null);
  };
  await report(2, 1500, 1);
  await report(1001, 2000, 3);
  // The job was lost before it came as far as the attempt before.
  await report(1801, 1850, 7);
  await report(2001, STEPS, 1);

  const baseURL = `${await stack.listen()}/openai/v1`;
  const { files } = new OpenAI({ baseURL, apiKey: ADMIN_KEY, maxRetries: 0 });
  const id = `file-results-${job.id}`;
  const { bytes, filename, purpose } = await files.retrieve(id);
  t.ok(read <= 200, `${read} of ${STEPS} metrics were read`);
  t.same({ filename, purpose }, { filename: 'step_metrics.csv', purpose: 'fine-tune-results' });
  const content = await (await files.content(id)).text();
  const sorted = [...lines].sort(([a], [b]) => a - b).map(([, line]) => line);
  t.equal(content, `step,train_loss,valid_loss\n${sorted.join('')}`);
  t.equal(bytes, content.length);
});
