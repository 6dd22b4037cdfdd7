import t from 'tap';
import type { OperationId, Share } from '../../contracts/index.js';
import { loadContract, operationOf } from '../operations.js';
import { requireShared } from './share-rule.js';

const jobId = `job_${'1'.repeat(26)}`;
const share: Share = { id: 'shr', job_id: jobId, description: '', created_at: '', expires_at: '' };
const contract = loadContract();
const operation = (id: OperationId) => operationOf(contract, id);

t.test('a share does what the contract allows, of its job', async (t) => {
  t.doesNotThrow(() => requireShared({ share }, operation('getJob'), { job_id: jobId }));
  t.doesNotThrow(() => requireShared({ share }, operation('getMe'), {}));
  t.throws(() => requireShared({ share }, operation('getJob'), { job_id: `job_${'2'.repeat(26)}` }), {
    code: 'job_not_found',
  });
  for (const id of ['pauseJob', 'listJobs', 'createShare'] as const)
    t.throws(() => requireShared({ share }, operation(id), { job_id: jobId }), { code: 'outside_share' });
  t.doesNotThrow(() => requireShared({ share: null }, operation('pauseJob'), { job_id: 'another' }));
});

t.test(
  'an operation that a share may do reads the job in its path, or concerns the share itself',
  async (t) => {
    const { document, operations } = contract;
    const shared = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).flatMap(([method, found]) =>
        (found as { 'x-shared'?: boolean })['x-shared'] ? [`${method} ${path}`] : [],
      ),
    );
    t.equal(shared.length, [...operations.values()].filter(({ isShared }) => isShared).length);
    const own = ['get /v1/me', 'delete /v1/sessions/current'];
    for (const one of shared) t.ok(own.includes(one) || one.startsWith('get /v1/jobs/{job_id}'), one);
  },
);
