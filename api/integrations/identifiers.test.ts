/** Identifiers that a tracker answers go into state, events and webhooks: they are bounded. */
import t from 'tap';
import { MlflowClient } from './mlflow-client.js';
import type { TrackerClient } from './tracker-client.js';
import { WandbClient } from './wandb-client.js';

const answering = (value: object) =>
  ({
    tracker: { url: 'https://tracker.example.com', authorization: null },
    send: async () => ({ status: 200, value }),
  }) as unknown as TrackerClient;
const [fits, long] = ['x'.repeat(256), 'x'.repeat(257)];

t.test('MLflow', async (t) => {
  const client = (runId: string, experimentId: string) =>
    new MlflowClient(
      answering({
        run: { info: { run_id: runId } },
        runs: [{ info: { run_id: runId } }],
        experiment: { experiment_id: experimentId },
      }),
    );
  const run = { experiment_id: '1', run_name: 'a', start_time: 0, tags: [] };
  t.equal((await client(fits, fits).createRun(run)).info.run_id, fits);
  t.equal(await client(fits, fits).experiment('a'), fits);
  for (const id of [long, '']) {
    await t.rejects(client(id, fits).createRun(run), { code: 'protocol_error' });
    await t.rejects(client(id, fits).findRun('1', { key: 'a', value: 'b' }), { code: 'protocol_error' });
    await t.rejects(client(fits, id).experiment('a'), { code: 'protocol_error' });
  }
});

t.test('W&B', async (t) => {
  const upsert = (entity: string, project: string, name: string) => {
    const bucket = { name, project: { name: project, entity: { name: entity } } };
    return new WandbClient(answering({ data: { upsertBucket: { bucket } } })).upsert({
      name: 'a',
      project: 'b',
    });
  };
  t.equal(await upsert('e', 'p', fits), `e/p/${fits}`);
  await t.rejects(upsert(long, 'p', 'n'), { code: 'protocol_error' });
  await t.rejects(upsert('e', long, 'n'), { code: 'protocol_error' });
  await t.rejects(upsert('e', 'p', long), { code: 'protocol_error' });
});
