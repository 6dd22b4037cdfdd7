import t from 'tap';
import type { JobSpec, Model } from '../contracts/index.js';
import { DEFAULT_CHAT_TEMPLATE } from './resolve/tokenizer.js';
import { LLAMA, SMALLEST } from './testing/documents.js';
import { dataWarnings, jobWarnings, modelWarnings } from './warnings.js';

const NO_CHATS = { data: { chat_template: null } };
const document = (changes: Partial<JobSpec>): JobSpec => ({ ...SMALLEST, ...changes });
const pointers = (warnings: readonly { pointer: string }[]) => warnings.map(({ pointer }) => pointer);

t.test('warnings of a DeepSpeed configuration', async (t) => {
  t.strictSame(jobWarnings(document({}), NO_CHATS), []);
  const taken = {
    overlap_comm: true,
    stage: 2,
    allgather_bucket_size: 5e8,
    offload_optimizer: { device: 'cpu', buffer_count: 4 },
  };
  const deepspeedConfig = {
    zero_optimization: taken,
    steps_per_print: 10,
    wall_clock_breakdown: false,
    monitor_config: { csv_monitor: {} },
    vocabulary_size: null,
  };
  const warnings = jobWarnings(document({ deepspeed_config: deepspeedConfig }), NO_CHATS);
  t.strictSame(pointers(warnings), [
    '/deepspeed_config/zero_optimization/allgather_bucket_size',
    '/deepspeed_config/zero_optimization/offload_optimizer/buffer_count',
    '/deepspeed_config/steps_per_print',
    '/deepspeed_config/monitor_config',
  ]);
  for (const { code, message } of warnings) {
    t.equal(code, 'field_without_effect');
    t.match(message, / has no effect: ./);
  }
});

t.test('warnings of a model configuration', async (t) => {
  const config = { ...LLAMA, temperature: 0.6, num_labels: 2, top_k: null } as JobSpec['model']['config'];
  t.strictSame(pointers(jobWarnings(document({ model: { config } }), NO_CHATS)), [
    '/model/config/num_labels',
    '/model/config/temperature',
  ]);
});

t.test('a template that nobody has chosen', async (t) => {
  const chats = { data: { chat_template: DEFAULT_CHAT_TEMPLATE } };
  t.match(jobWarnings(document({}), chats), [
    { pointer: '/data/chat_template', code: 'default_chat_template', message: /ChatML/ },
  ]);
  const chosen = document({ data: { ...SMALLEST.data, chat_template: DEFAULT_CHAT_TEMPLATE } });
  t.strictSame(jobWarnings(chosen, chats), []);
});

t.test('warnings of an uploaded model', async (t) => {
  const model = { model_type: 'llama', config: LLAMA, dtypes: ['bf16'] } as Partial<Model> as Model;
  t.strictSame(modelWarnings(model), []);
  t.match(
    modelWarnings({
      ...model,
      config: { ...model.config, top_p: 0.9 },
      unread_tokenizer: ['vocab.json'],
    }),
    [
      { pointer: '/config/top_p', code: 'field_without_effect' },
      { pointer: '/unread_tokenizer/0', code: 'tokenizer_not_read', message: /^vocab.json is kept/ },
    ],
  );
  const tokenizer = { vocab_size: 9, chat_template: null };
  t.strictSame(modelWarnings({ ...model, tokenizer }), []);
  t.match(modelWarnings({ ...model, tokenizer: { ...tokenizer, flaw: 'split_pattern' } }), [
    { pointer: '/tokenizer/flaw', code: 'tokenizer_flaw', message: /fix_mistral_regex=True/ },
  ]);
  t.match(modelWarnings({ ...model, dtypes: ['bf16', 'fp32'] }), [
    { pointer: '/dtypes', code: 'mixed_dtypes', message: /answers compute in bf16/ },
  ]);
  t.strictSame(modelWarnings({ ...model, dtypes: ['bf16', 'fp16'] }), [], 'computed in fp32');
  const alone = { ...model, model_type: null, config: {} };
  t.strictSame(modelWarnings(alone), [], 'a tokenizer alone has no configuration');
});

t.test('warnings of a dataset', async (t) => {
  t.strictSame(dataWarnings({ documents: 3, flaws: {} }, 256), []);
  const flaws = {
    no_stop_token: { texts: 2, first_line: 7 },
    repeated_begin: { texts: 1, first_line: null },
    cut: { texts: 1, first_line: 1 },
  };
  t.match(dataWarnings({ documents: 3, flaws }, 256), [
    {
      pointer: '/data/chat_template',
      code: 'no_stop_token',
      message: /^in 2 of 3 texts \(the first in line 7\) .*\{% generation %\}/,
    },
    { pointer: '/data/dataset', code: 'repeated_begin', message: /^1 of 3 texts begin with/ },
  ]);
  const cut = { texts: 2, first_line: 1, needed_length: 129 };
  t.match(dataWarnings({ documents: 3, flaws: { cut } }, 136), [
    {
      pointer: '/train/sequence_length',
      code: 'cut',
      message: /^2 of 3 texts \(the first in line 1\) do not fit/,
      suggestion: 136,
    },
  ]);
  const [possible] = dataWarnings({ documents: 3, flaws: { cut } }, 135);
  t.match(possible, { code: 'cut' });
  t.notOk(possible && 'suggestion' in possible, 'the model has too few positions');
});
