import t from 'tap';
import { isErrorCode, ZerofleetError } from './errors.js';
import { canTransition, isActive, isFinal, JOB_STATES, JOB_TRANSITIONS } from './job-states.js';
import { datasetKey } from './object-keys.js';
import { queueJobId, queueName } from './queue.js';

t.test('a final state has no transitions', async (t) => {
  t.same(JOB_STATES.filter(isFinal), ['cancelled', 'succeeded', 'failed']);
  for (const final of JOB_STATES.filter(isFinal)) {
    for (const state of JOB_STATES) t.notOk(canTransition(final, state), `${final} → ${state}`);
  }
});

t.test('every state is reachable and leads to a final state', async (t) => {
  const reachable = (from: (typeof JOB_STATES)[number]) => {
    const seen = new Set([from]);
    for (const state of seen) for (const next of JOB_TRANSITIONS[state]) seen.add(next);
    return seen;
  };
  t.same([...reachable('queued')].sort(), [...JOB_STATES].sort());
  for (const state of JOB_STATES) t.ok([...reachable(state)].some(isFinal), state);
});

t.test('a worker may be lost in every active state', async (t) => {
  for (const state of JOB_STATES.filter(isActive)) {
    t.ok(state === 'recovering' || canTransition(state, 'recovering'), state);
  }
});

t.test('errors have the properties of their code', async (t) => {
  const error = new ZerofleetError('stale_epoch', 'epoch 3 has ended', { details: { epoch: 3 } });
  t.match(error, { code: 'stale_epoch', message: 'epoch 3 has ended', fields: [], details: { epoch: 3 } });
  t.equal(error.kind.status, 409);
  t.equal(isErrorCode('stale_epoch'), true);
  for (const code of ['toString', 'nope', undefined, 3]) t.equal(isErrorCode(code), false, String(code));
});

t.test('names in the queue and in the object store', async (t) => {
  t.equal(queueName('host-1-ab'), 'worker-host-1-ab');
  t.equal(queueJobId({ job_id: 'job_1', attempt: 2 }), 'job_1-2');
  t.equal(datasetKey('ds_1'), 'datasets/ds_1/text');
});
