/** A few requests per operation; `npm run test:property` sends more. */
import t from 'tap';
import { loadContract } from '../../api/operations.js';
import { HOSTILE_MODELS } from '../../api/testing/hostile-uploads.js';
import { openaiRequests } from '../openai/requests.js';
import { runRequests } from './run.js';

const REQUESTS = 2000;

t.test('all answers match the contract', async (t) => {
  const report = await runRequests({ requests: REQUESTS, seed: Number(process.env.PROPERTY_SEED ?? 20_261) });
  for (const finding of report.findings) t.fail(finding.problem, { finding });
  t.equal(report.server_errors, 0);
  t.equal(report.lease_error, null, 'no lease was lost');
  t.equal(report.requests, REQUESTS);
  t.ok(report.hostile_uploads >= Object.keys(HOSTILE_MODELS).length);
  const operations = [...loadContract().operations.keys()];
  const called = new Set(Object.keys(report.statuses));
  t.strictSame(
    [...operations, ...openaiRequests().keys()].filter((name) => !called.has(name)),
    [],
  );
  const total = (test: (status: number) => boolean) =>
    Object.values(report.statuses)
      .flatMap((counts) => Object.entries(counts))
      .reduce((sum, [status, count]) => sum + (test(Number(status)) ? count : 0), 0);
  t.ok(total((status) => status < 400) > 100, 'many were valid');
  t.ok(total((status) => status >= 400) > 100, 'many were invalid');
});
