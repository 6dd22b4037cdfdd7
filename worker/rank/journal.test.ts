import t from 'tap';
import type { AgentMessage, RankMessage, SteppedMessage } from '../../contracts/rank-protocol.js';
import { heartbeat } from '../testing/heartbeat.js';
import { startMessage } from '../testing/start-message.js';
import { STEP_SECONDS, stepped } from '../testing/stepped.js';
import type { RankChannel } from './channel.js';
import { withJournal } from './journal.js';

function journal() {
  const sent: RankMessage[] = [];
  const lines: string[] = [];
  const clock = { now: 0 };
  let hear: (message: AgentMessage) => void = () => undefined;
  const channel: RankChannel = {
    send: async (message) => void sent.push(message),
    onMessage: (handler) => {
      hear = handler;
    },
    onDisconnect: () => undefined,
  };
  const channelWithJournal = withJournal(channel, {
    info: (line) => lines.push(line),
    warn: (line) => lines.push(`! ${line}`),
    now: () => clock.now,
  });
  const received: AgentMessage[] = [];
  channelWithJournal.onMessage((message) => received.push(message as AgentMessage));
  return {
    channel_with_journal: channelWithJournal,
    sent,
    received,
    lines,
    clock,
    hear: (message: AgentMessage) => hear(message),
  };
}

const step = (number: number, fields: Partial<SteppedMessage> = {}) =>
  stepped(number, {
    loss: 2.123456,
    grad_norm: 1.5,
    lr: 0.0003,
    seconds: { ...STEP_SECONDS, total: 0.05 },
    ...fields,
  });

t.test('the journal of a rank', async (t) => {
  const { channel_with_journal, sent, received, lines, hear } = journal();
  const start = startMessage({ job_id: 'job_1', rank: 0, world_size: 2 });
  hear(start);
  const param = {
    name: 'w',
    shape: [2, 3],
    numel: 6,
    group: 'default',
    frozen: false,
    base: false,
    expert_set: null,
  };
  const messages: RankMessage[] = [
    {
      kind: 'connected',
      params: [param, { ...param, frozen: true }],
      states: [],
      sharding: { block_elements: 4096, bucket_blocks: 8, expert_sets: 1 },
      numerics_fingerprint: 'cpu-generic/2',
    },
    { kind: 'running', step: 20 },
    step(21),
    { kind: 'stopped', step: 22, flags: 0 },
    { kind: 'failed', error: { code: 'diverged', message: 'not\n  finite' }, step: 22 },
    heartbeat({ step: 22 }),
  ];
  for (const message of messages) await channel_with_journal.send(message);
  t.same(sent, messages, 'messages pass unchanged');
  t.same(received, [start]);
  t.match(lines, [
    /^rank 0 of 2 job=job_1 epoch=\d+ threads=\d+$/,
    /^job model=\w+ steps=\d+ global_batch_size=\d+ .* precision=\w+ zero_stage=\d$/,
    'model parameters=12 trained=6 tensors=2',
    'connected kernels=cpu-generic/2',
    'training begins after_step=20',
    /^step 21 of \d+ loss=2\.123 grad_norm=1\.5 lr=0\.0003 tokens_per_second=20000 seconds=0\.05$/,
    /^training ends after_step=\d+$/,
    '! rank failed: diverged: not | finite',
  ]);
  t.equal(lines.length, 8);
});

t.test('steps: the first, the last, evaluated ones, and one per five seconds', async (t) => {
  const { channel_with_journal, lines, clock, hear } = journal();
  const start = startMessage({ rank: 0 });
  const means = { reward_chosen: 1, reward_rejected: 0.5, log_prob_chosen: -1, log_prob_rejected: -2 };
  hear({ ...start, spec: { ...start.spec, train: { ...start.spec.train, steps: 1000 } } });
  lines.length = 0;
  for (let i = 1; i <= 1000; i++) {
    clock.now += 20;
    const evaluated = ['validation', 'code'].map((name) => ({
      name,
      loss: 2,
      tokens: 1,
      sequences: 1,
      seconds: 1,
    }));
    const evaluations = i === 300 ? evaluated : [];
    const preference = i === 1000 ? { ...means, margin: 0.5, accuracy: 0.75 } : null;
    await channel_with_journal.send(step(i, { evaluations, preference, finite: i !== 7, loss_scale: 1024 }));
  }
  t.same(
    lines.map((line) => line.replace(/^(! )?step (\d+).*$/, '$1$2')),
    ['1', '! 7', '251', '300', '550', '800', '1000'],
  );
  t.match(lines[1], '! step 7 skipped: its gradients were not finite loss_scale=1024 skipped_steps=0');
  t.match(lines.at(-1), / loss=2\.123 margin=0\.5 accuracy=0\.75 /);
  t.match(lines[3], /eval_loss=2 eval_loss\/code=2 loss_scale=1024$/);
});
