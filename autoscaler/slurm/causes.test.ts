import t from 'tap';
import { causeOf, phaseOf } from './causes.js';
import type { SlurmJob } from './job.js';

const phase = (states: string[], fields: Partial<SlurmJob> = {}) =>
  phaseOf({
    id: 1,
    name: '',
    user: '',
    states,
    reason: 'None',
    starts_at: 0,
    ends_at: 0,
    preempted_at: 0,
    restarts: 0,
    ...fields,
  });

t.test('states of a job, of Slurm before and since version 23.02', async (t) => {
  t.equal(phase(['PENDING'], { reason: 'Priority' }), 'pending');
  t.equal(phase(['PENDING'], { reason: 'BadConstraints' }), 'hopeless');
  t.equal(phase(['PENDING', 'REQUEUED'], { reason: 'BeginTime' }), 'pending');
  t.equal(phase(['PENDING', 'SPECIAL_EXIT'], { reason: 'JobHeldUser' }), 'hopeless');
  t.equal(phase(['CONFIGURING']), 'running');
  t.equal(phase(['RUNNING', 'CONFIGURING']), 'running');
  t.equal(phase(['RUNNING']), 'running');
  t.equal(phase(['RUNNING'], { preempted_at: 1 }), 'leaving');
  t.equal(phase(['COMPLETING']), 'leaving');
  t.equal(phase(['TIMEOUT', 'COMPLETING']), 'leaving');
  t.equal(phase(['SUSPENDED']), 'leaving');
  t.equal(phase(['TIMEOUT']), 'ended');
  t.equal(phase(['PREEMPTED'], { preempted_at: 1 }), 'ended');
});

t.test('each final state has a cause', async (t) => {
  for (const [states, cause] of [
    [['COMPLETED'], 'completed'],
    [['FAILED'], 'failed'],
    [['OUT_OF_MEMORY'], 'failed'],
    [['TIMEOUT'], 'time_limit'],
    [['DEADLINE'], 'time_limit'],
    [['PREEMPTED'], 'preempted'],
    [['NODE_FAIL'], 'node_failed'],
    [['BOOT_FAIL'], 'node_failed'],
    [['CANCELLED'], 'cancelled'],
    [['A_NEW_ONE'], 'unknown'],
  ] as const)
    t.equal(causeOf({ states }), cause);
});
