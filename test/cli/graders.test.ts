/** Reinforcement learning on the command line: graders, their jobs, and the samples. */
import t from 'tap';
import { claimAndTrain } from '../../api/testing/training.js';
import type { Job, Rollout } from '../../contracts/index.js';
import { rewardsKey } from '../../formats/checkpoint/layout.js';
import { EXACT } from '../../job-document/testing/documents.js';
import { start } from './command-line.js';

const SOURCE = 'def grade(sample, item):\n    return len(sample["output_text"]) / len(item["answer"])\n';
const PROMPTS = ['2', '4'].map((answer) => `${JSON.stringify({ prompt: `${answer}=`, answer })}\n`).join('');

t.test('graders are tried and checked', async (t) => {
  const { zerofleet, file } = await start(t);
  const python = await file('grade.py', SOURCE);
  const yaml = Object.entries(EXACT).map(([name, value]) => `${name}: '${value}'`);
  const exact = await file('exact.yaml', yaml.join('\n'));
  const run = (...args: string[]) => zerofleet(['graders', 'run', ...args]);
  t.match(await run(exact, '4', '--item', '{"answer": "4"}'), {
    code: 0,
    out: 'reward 1\n  exact 1',
    err: '',
  });
  t.match(await run(exact, '5', '--item', 'answer: "4"'), { code: 0, out: 'reward 0\n  exact 0' });
  t.match(await run(python, 'ab', '--item', '{"answer": "four"}'), {
    code: 0,
    out: 'reward 0.5\n  grade 0.5',
  });
  t.match(await run(exact, '4'), {
    code: 1,
    out: /^reward 0\n {2}exact 0\nexact: template_variable_missing: \{\{item.answer\}\}: there is no answer$/,
    err: 'the grader failed',
  });
  t.match(await run(exact, '4', '--item', '[1]'), {
    code: 2,
    err: '--item holds no fields: write them as {"answer": "42"}',
  });
  t.match(await run('absent.py', '4'), { code: 2, err: 'there is no file absent.py' });

  const validate = (path: string) => zerofleet(['graders', 'validate', path]);
  t.match(await validate(python), { code: 0, out: 'the grader grade has no problem' });
  t.match(await validate(await file('bad.py', 'def grade(:')), {
    code: 1,
    err: /\n {2}\/grader\/source: .*line 1/,
  });
  t.match(await validate(await file('other.json', '{"type": "string_check", "name": "a"}')), {
    code: 1,
    err: /\/grader\/operation/,
  });
  t.match(await validate(await file('list.json', '[1]')), { code: 2, err: /list.json holds no grader/ });
});

t.test('a job without a document, its progress and its samples', async (t) => {
  const { stack, zerofleet, file } = await start(t);
  const { store, objects } = stack;
  const prompts = await file('prompts.jsonl', PROMPTS);
  const python = await file('grade.py', SOURCE);
  const sampling = [
    '--group-size',
    '4',
    '--prompts-per-step',
    '2',
    '--max-tokens',
    '9',
    '--temperature',
    '0.7',
  ];
  const made = await zerofleet(['train', prompts, '--grader', python, ...sampling, '--steps', '3', '--json']);
  t.equal(made.code, 0, made.err);
  const { id, spec } = JSON.parse(made.out) as Job;
  t.match(spec.train, {
    steps: 3,
    objective: {
      type: 'grpo',
      grader: { type: 'python', name: 'grade', source: SOURCE },
      group_size: 4,
      prompts_per_step: 2,
      max_tokens: 9,
      temperature: 0.7,
    },
  });
  t.match(await zerofleet(['train', prompts]), { code: 1, err: /2 prompts without a completion/ });
  t.match(await zerofleet(['train', prompts, '--group-size', '4']), {
    code: 2,
    err: '--group-size needs --grader: a Python file with grade(sample, item), or a grader as YAML or JSON',
  });

  t.match(await zerofleet(['samples', id]), { code: 1, err: /no step has samples/ });
  const execution = await claimAndTrain(store, id, { steps: 2, reinforcement: { reward: 0.625 } });
  let isFinished = false;
  const watched = await zerofleet(['watch', id], {
    onOut: (out) => {
      if (isFinished || !out.startsWith('running')) return;
      isFinished = true;
      void store.finishJob(id, execution, 'succeeded', { reason: 'completed' });
    },
  });
  t.match(watched, { code: 0, out: /^succeeded +step 2\/3 +loss \d\.\d+ +reward 0\.6250 /m });

  const rollout: Rollout = {
    step: 1,
    call: 1,
    groups: [
      {
        line: 1,
        prompt: '2=',
        samples: [
          { text: '2\n3', tokens: 3, truncated: true, reward: 1 / 3, scores: {}, errors: [] },
          {
            text: 'x',
            tokens: 1,
            truncated: false,
            reward: 0,
            scores: {},
            errors: [{ grader: 'grade', code: 'python_failed', message: 'KeyError' }],
          },
        ],
      },
    ],
  };
  await objects.put(rewardsKey(id, 1), Buffer.from(JSON.stringify(rollout)));
  await store.countCalls(id, { appended: 3, answered: 3, is_finished: false, bytes: 0 });
  const text = 'step 1\n\nprompt: 2=\nreward 0.3333\n  2\n  3\nreward 0\n  x\n  grade failed: KeyError';
  for (const step of [[], ['--step', '1']])
    t.match(await zerofleet(['samples', id, ...step]), { code: 0, out: text });
  t.match(await zerofleet(['samples', id, '--step', '7']), { code: 1, err: /step 7 does not have samples/ });
  const { id: plain } = await stack.createJob();
  t.match(await zerofleet(['samples', plain, '--step', '1']), { code: 2, err: /^--step selects samples/ });
});
