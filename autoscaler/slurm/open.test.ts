import t from 'tap';
import { sharedEnvironment } from './open.js';

t.test('allocations get no variables of the machine or allocation of the autoscaler', async (t) => {
  const shared = {
    PATH: '/bin',
    SLURM_CONF: '/etc/slurm.conf',
    AWS_REGION: 'eu-central-1',
    ZEROFLEET_DEVICE: 'cuda',
    ZEROFLEET_LOG_LEVEL: 'warn',
  };
  const own = {
    SLURM_JOB_ID: '7',
    SLURMD_NODENAME: 'n1',
    SBATCH_PARTITION: 'main',
    SQUEUE_FORMAT: '%i',
    ZEROFLEET_ADDRESS: '10.0.0.1',
    ZEROFLEET_DATA_DIR: '/data',
    ZEROFLEET_MACHINE_ID: 'm',
    ZEROFLEET_HOST: '0.0.0.0',
  };
  t.same(sharedEnvironment({ ...own, ...shared }), shared);
});
