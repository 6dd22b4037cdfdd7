import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import type { AgentMessage, LocalMessage, RankMessage, StartMessage } from '../../contracts/rank-protocol.js';
import { fakeCore } from '../testing/fake-core.js';
import { startMessage } from '../testing/start-message.js';
import type { RankChannel } from './channel.js';
import { runRank } from './run-rank.js';

/** An agent that starts the rank and relays its keys to it. */
class Agent implements RankChannel {
  readonly heard: RankMessage[] = [];
  private readonly handlers: ((message: AgentMessage | LocalMessage) => void)[] = [];

  async send(message: RankMessage): Promise<void> {
    this.heard.push(message);
    if (message.kind === 'publish') this.tell({ kind: 'deliver', key: message.key, value: message.value });
    if (message.kind === 'stopped') this.tell({ kind: 'exit' });
  }

  onMessage(handler: (message: AgentMessage | LocalMessage) => void): void {
    this.handlers.push(handler);
  }

  onDisconnect(): void {}

  tell(message: AgentMessage): void {
    for (const handler of this.handlers) handler(message);
  }
}

async function run(t: Test, core: ReturnType<typeof fakeCore>, start: Partial<StartMessage> = {}) {
  const agent = new Agent();
  const code = runRank(agent, core);
  const object_store = { url: pathToFileURL(t.testdir()).href, s3_endpoint: null };
  agent.tell(startMessage({ object_store, ...start }));
  return { code: await code, heard: agent.heard };
}

t.test('a rank says what went wrong although its trainer takes for ever to close', async (t) => {
  const beforeStep = async (step: number) => {
    if (step === 3) throw Object.assign(new Error('as a core says it'), { code: 'token_out_of_vocab' });
  };
  let closed = 0;
  const onClose = () => {
    closed++;
    return new Promise<void>(() => undefined);
  };
  const { code, heard } = await run(t, fakeCore({ beforeStep, onClose }));
  t.equal(code, 1);
  t.equal(closed, 1);
  t.match(heard.at(-1), { kind: 'failed', step: 2, error: { code: 'token_out_of_vocab' } });
});

t.test('a rank that is done says so and goes when it is told to', async (t) => {
  const { code, heard } = await run(t, fakeCore());
  t.equal(code, 0);
  t.match(heard.at(-1), { kind: 'stopped', step: 20, flags: 0 });
});

t.test(
  'a rank on the CPU stays on the node of its number on this machine, before it has a trainer',
  async (t) => {
    const calls: unknown[] = [];
    const core = {
      ...fakeCore(),
      stayOnNode: (...place: number[]) => calls.push(place) > 0,
      createTrainer: () => {
        calls.push('trainer');
        throw new Error('no more of it');
      },
    };
    await run(t, core, { rank: 5, world_size: 8, local_ranks: 4, threads: 3 });
    t.strictSame(calls, [[1, 4, 3], 'trainer']);
    calls.length = 0;
    await run(t, core, { device: 'cuda' });
    t.notOk(calls.some(Array.isArray), 'a GPU has a node of its own');
  },
);
