// Safety-critical files by area, and the test files that must detect their mutants. The tests are fast ones: each runs
// once per mutant that it covers.

const inFolder = (folder, ...names) => names.map((name) => `${folder}/${name}.ts`);

export const AREAS = {
  /** Ownership of jobs, and its expiry. */
  lease: {
    sources: [
      'worker/agent/lease/lease.ts',
      'platform/process/retry.ts',
      ...inFolder('worker/shared', 'within', 'clock'),
    ],
    tests: [
      ...inFolder('worker/agent/lease', 'lease.test', 'lease-writes.test'),
      'platform/process/retry.test.ts',
      'worker/shared/within.test.ts',
    ],
  },
  /** Number of machines, and the choice of machines to end. */
  autoscaler: {
    sources: inFolder('autoscaler/controller', 'budget', 'choose', 'decide', 'demand', 'groups', 'observe'),
    tests: inFolder(
      'autoscaler/controller',
      'budget.test',
      'choose.test',
      'decide-requests.test',
      'decide-retirements.test',
      'demand.test',
      'groups.test',
      'observe.test',
    ),
  },
  /** Writes with an epoch. */
  fencing: {
    sources: [...inFolder('state/jobs', 'attempts', 'execution', 'finish', 'holds'), 'state/pools/worlds.ts'],
    tests: inFolder('state/jobs', 'attempts-calls.test', 'execution-calls.test'),
  },
  /** Choice of checkpoints to remove. */
  retention: {
    sources: inFolder('worker/agent/checkpoint', 'retention', 'leftovers', 'lineage'),
    tests: inFolder('worker/agent/checkpoint', 'retention.test', 'leftovers.test'),
  },
  /** Commit of a save as a checkpoint. */
  saves: {
    sources: [
      'worker/agent/attempt/job-checkpoints.ts',
      ...inFolder('worker/agent/checkpoint', 'commit', 'save-collector'),
      ...inFolder('formats/checkpoint', 'checkpoint-of', 'digest', 'layout', 'manifest-seal'),
    ],
    tests: [
      ...inFolder('worker/agent/checkpoint', 'commit.test', 'commit-steps.test', 'save-collector.test'),
      'worker/agent/attempt/job-checkpoints.test.ts',
      'formats/checkpoint/format.test.ts',
    ],
  },
  /** Verification of loads. */
  loads: {
    sources: [
      ...inFolder('worker/shared', 'verify-load', 'crc-combine', 'read-manifest'),
      ...inFolder('worker/rank/load', 'chunks', 'fit'),
      ...inFolder('formats/checkpoint', 'verify', 'manifest', 'read-plan', 'shard-contents'),
      'contracts/shard-layout.ts',
    ],
    tests: [
      ...inFolder('worker/shared', 'verify-load.test', 'crc-combine.test', 'read-manifest.test'),
      ...inFolder('worker/rank/load', 'chunks.test', 'fit.test'),
      ...inFolder('formats/checkpoint', 'verify.test', 'format.test', 'read-plan.test'),
      'contracts/shard-layout.test.ts',
    ],
  },
  /** Access of a request to records by project. */
  isolation: {
    sources: ['api/access/project-records.ts', 'api/http/authenticate.ts'],
    tests: ['api/access/other-projects.test.ts', 'api/http/one-key.test.ts'],
  },
  /** Idempotency of requests. */
  idempotency: {
    sources: [
      'api/plugins/idempotency.ts',
      'platform/canonical-json.ts',
      ...inFolder('state/repeats', 'idempotency', 'repeats'),
    ],
    tests: [
      'api/plugins/idempotency.test.ts',
      'platform/canonical-json.test.ts',
      'state/repeats/repeats.test.ts',
    ],
  },
};
