import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import t from 'tap';
import { NcclLog, ncclFacts, ncclLine } from './nccl-log.js';

const EFA = `ip-10-0-0-1:20:20 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>
ip-10-0-0-1:20:20 [0] NCCL INFO cudaDriverVersion 13000
ip-10-0-0-1:20:20 [0] NCCL INFO NCCL version 2.27.7+cuda13.0
ip-10-0-0-1:20:31 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.21.1
ip-10-0-0-1:20:31 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
ip-10-0-0-1:20:31 [0] NCCL INFO Using network Libfabric
ip-10-0-0-1:20:31 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Libfabric/0/GDRDMA
`;

t.test("facts of NCCL's log", async (t) => {
  t.strictSame(ncclFacts(EFA), { network: 'Libfabric', provider: 'efa', version: '2.27.7+cuda13.0' });
  const old =
    'a:1:1 [0] NCCL INFO NET/OFI Selected Provider is efa;ofi_rxr\na:1:1 [0] NCCL INFO Using network AWS Libfabric';
  t.strictSame(ncclFacts(old), { network: 'AWS Libfabric', provider: 'efa;ofi_rxr', version: null });
  t.strictSame(ncclFacts('a:1:1 [0] NCCL INFO Using network IB\n'), {
    network: 'IB',
    provider: null,
    version: null,
  });
  const unknown = { network: 'unknown', provider: null, version: null };
  for (const log of [
    '',
    'NCCL INFO Using network',
    `NCCL INFO Using network ${'x'.repeat(1000)}`,
    '\0\u{1b}[31m',
  ])
    t.strictSame(ncclFacts(log), unknown);
});

t.test('the line of a rank', async (t) => {
  t.equal(ncclLine(ncclFacts(EFA)), 'NCCL network: Libfabric, provider efa, NCCL 2.27.7+cuda13.0');
  t.equal(ncclLine(ncclFacts('')), 'NCCL network: unknown');
});

t.test('the log goes to a private file, which is read and removed', async (t) => {
  const env: NodeJS.ProcessEnv = {};
  const log = await NcclLog.begin(env);
  t.match(env, { NCCL_DEBUG: 'INFO', NCCL_DEBUG_SUBSYS: 'INIT,NET' });
  const file = env.NCCL_DEBUG_FILE ?? '';
  await writeFile(file, EFA);
  t.equal((await log?.end())?.network, 'Libfabric');
  t.notOk(existsSync(dirname(file)));
});

t.test('a log that is missing or no file is unknown, and no error', async (t) => {
  for (const spoil of [async () => undefined, (file: string) => mkdir(file)]) {
    const env: NodeJS.ProcessEnv = {};
    const log = await NcclLog.begin(env);
    await spoil(env.NCCL_DEBUG_FILE ?? '');
    t.equal((await log?.end())?.network, 'unknown');
    t.notOk(existsSync(dirname(env.NCCL_DEBUG_FILE ?? '')));
  }
});

t.test("a user's own NCCL_DEBUG stays as it is", async (t) => {
  const env = { NCCL_DEBUG: 'WARN' };
  t.equal(await NcclLog.begin(env), null);
  t.strictSame(env, { NCCL_DEBUG: 'WARN' });
});
