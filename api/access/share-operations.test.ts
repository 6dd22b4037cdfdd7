/** A share reads its job and nothing else, whatever the operation. */
import t from 'tap';
import type { OperationId } from '../../contracts/index.js';
import { ContractChecker } from '../testing/contract-checker.js';
import {
  fill,
  type Ids,
  masked,
  type Operation,
  operationsOf,
  ROWS,
  requestOf,
  SHARE,
  unknown,
} from '../testing/every-operation.js';
import { ADMIN_KEY, startTestStack } from '../testing/stack.js';

/** A share reads its job, and ends sessions of itself. */
const OF_EVERY_SHARE = new Set<OperationId>([
  'getMe',
  'getJob',
  'getJobDocument',
  'listJobAttempts',
  'listJobCheckpoints',
  'listJobEvents',
  'listJobLogs',
  'listJobMetrics',
  'streamJob',
  'endSession',
]);

t.test('every operation with a share', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const checker = ContractChecker.forContract(stack.app.services.contract);
  const ids = await fill(stack);
  const { id: jobId } = await stack.createJob();
  const token = `zf_share_${'j'.repeat(43)}`;
  await stack.store.createShare(token, { job_id: jobId, description: 'for a review', life_ms: 3_600_000 });
  const send = async (operation: Operation, records: Ids) => {
    const request = requestOf(operation, records);
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const reply = await stack.app.inject({ ...request, headers });
    checker.check(request, reply);
    return reply;
  };
  const withJob = (id: string): Ids => ({ ...ids, job_id: id, ended_job_id: id });
  const secrets = [ADMIN_KEY, 'whsec_AA==', token, SHARE, 'theirs', ids.webhook_id, ids.key_id];
  const operations = operationsOf(stack).filter(({ id }) => !ROWS[id].isOpen);
  const [read, refused] = [OF_EVERY_SHARE, (id: OperationId) => !OF_EVERY_SHARE.has(id)];
  for (const operation of operations.filter(({ id }) => refused(id)))
    for (const records of [ids, withJob(jobId)])
      t.match((await send(operation, records)).json(), { status: 403, code: 'outside_share' }, operation.id);

  // A stream does not end while its job lives.
  for (const operation of operations.filter(({ id }) => read.has(id) && id !== 'streamJob')) {
    const reply = await send(operation, withJob(jobId));
    t.equal(reply.statusCode, ROWS[operation.id].own, `${operation.id} of the shared job: ${reply.body}`);
    for (const secret of secrets) t.notOk(reply.body.includes(secret), `${operation.id} has ${secret}`);
  }
  for (const operation of operations.filter(({ id, path }) => read.has(id) && path.includes('{job_id}'))) {
    const other = await send(operation, ids);
    const missing = await send(operation, withJob(unknown(jobId)));
    t.equal(other.statusCode, 404, `${operation.id}: another job of the project`);
    t.equal(masked(other.body), masked(missing.body), `${operation.id}: as for an unknown id`);
  }
});
