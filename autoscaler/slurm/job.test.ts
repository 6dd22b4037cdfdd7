import t from 'tap';
import { parseQueue, parseRecords } from './job.js';

/** Job as Slurm 22.05 prints it, with the fields that are read. */
const OLD = {
  account: '',
  job_id: 20,
  name: 'zerofleet/x/default/m/0',
  user_name: 'me',
  job_state: 'RUNNING',
  state_reason: 'None',
  start_time: 1795686658,
  end_time: 1795687258,
  preempt_time: 0,
  restart_cnt: 1,
};
const number = (value: number) => ({ set: true, infinite: false, number: value });
/** The same as Slurm prints it since 23.11. */
const NEW = {
  ...OLD,
  job_state: ['RUNNING'],
  start_time: number(1795686658),
  end_time: number(1795687258),
  preempt_time: { set: false, infinite: false, number: 0 },
};
const PARSED = {
  id: 20,
  name: 'zerofleet/x/default/m/0',
  user: 'me',
  states: ['RUNNING'],
  reason: 'None',
  starts_at: 1795686658000,
  ends_at: 1795687258000,
  preempted_at: 0,
  restarts: 1,
};
const isOwn = (name: string) => name.startsWith('zerofleet/');
const printed = (...jobs: unknown[]) => JSON.stringify({ meta: {}, errors: [], jobs });

t.test('the queue is read as Slurm 22.05 and later ones print it', async (t) => {
  t.same(parseQueue(printed(OLD), isOwn), [PARSED]);
  t.same(parseQueue(printed(NEW), isOwn), [PARSED]);
  const endless = { ...NEW, end_time: { set: true, infinite: true, number: 0 } };
  t.match(parseQueue(printed(endless), isOwn), [{ ends_at: 0 }]);
  t.same(parseQueue(printed({ job_id: 'other', name: 'other' }, { name: null }), isOwn), []);
});

t.test('other output is refused', async (t) => {
  t.throws(() => parseQueue('slurm_load_jobs error', isOwn));
  t.throws(() => parseQueue('{"jobs": null}', isOwn), /output of squeue: \/jobs/);
  t.throws(
    () => parseQueue(printed({ ...OLD, restart_cnt: 'x' }), isOwn),
    /output of squeue: a job's \/restart_cnt/,
  );
  t.throws(() => parseRecords(printed({ job_id: 1 })), /output of sacct: a job's \/ must have/);
});

t.test('the accounting is read', async (t) => {
  const job = (current: unknown) => ({ job_id: 7, state: { current, reason: 'NodeDown' } });
  const record = { id: 7, states: ['NODE_FAIL'], reason: 'NodeDown' };
  t.same(parseRecords(printed(job('NODE_FAIL'), job(['NODE_FAIL']))), [record, record]);
});
