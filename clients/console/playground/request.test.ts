import t from 'tap';
import { choicesOf, DEFAULT_SETTINGS, likelihood, percent, requestFor } from './request.js';

t.test('a text is continued with the settings; an empty one is left to the server', async (t) => {
  const settings = { ...DEFAULT_SETTINGS, max_tokens: ' ', temperature: '0.5', logprobs: false };
  t.strictSame(requestFor(settings, 'Once', [{ role: 'user', content: 'not of a text' }]), {
    prompt: 'Once',
    temperature: 0.5,
    top_p: 1,
    top_k: 0,
    seed: 1,
  });
});

t.test('a chat goes on after the earlier turns, with the system message first', async (t) => {
  const turns = [
    { role: 'user', content: 'One?' },
    { role: 'assistant', content: 'One.' },
  ];
  const settings = { ...DEFAULT_SETTINGS, mode: 'chat' as const, system: 'Be brief.' };
  const { messages, logprobs, prompt } = requestFor(settings, 'Two?', turns);
  t.strictSame(messages, [
    { role: 'system', content: 'Be brief.' },
    ...turns,
    { role: 'user', content: 'Two?' },
  ]);
  t.equal(logprobs, 5);
  t.equal(prompt, undefined);
  t.equal(requestFor(settings, 'Two?', [], '{{ messages }}').chat_template, '{{ messages }}');
  t.strictSame(requestFor({ ...settings, system: '' }, 'Two?', []).messages, [
    { role: 'user', content: 'Two?' },
  ]);
});

t.test('what can answer is offered by name', async (t) => {
  const models = [
    { id: 'mdl_1', name: 'qwen', model_type: 'qwen3' },
    { id: 'mdl_2', name: 'words', model_type: null },
  ];
  const checkpoints = [
    { id: 'ckpt_1', job_id: 'job_1', step: 7, damaged: false },
    { id: 'ckpt_2', job_id: 'job_1', step: 6, damaged: true },
    { id: 'ckpt_3', job_id: 'job_2', step: 5, damaged: false },
  ];
  t.strictSame(choicesOf(models, checkpoints, [{ id: 'job_1', name: 'hamlet' }]), [
    { id: 'mdl_1', label: 'qwen, uploaded' },
    { id: 'ckpt_1', label: 'hamlet, step 7' },
    { id: 'ckpt_3', label: 'job_2, step 5' },
  ]);
});

t.test('probabilities in words and colours', async (t) => {
  t.equal(percent(0), '100.0 %');
  t.equal(percent(Math.log(0.25)), '25.0 %');
  t.equal(percent(Math.log(0.0001)), '< 0.1 %');
  t.strictSame([0.01, 0.1, 0.5, 0.7, 0.95].map(Math.log).map(likelihood), [0, 1, 2, 3, 4]);
});
