import t from 'tap';
import { allowedKind, dtypesOf, fileLink, formatsOf, weightsOf } from './export-kinds.js';

type Spec = Parameters<typeof formatsOf>[0];
const whole: Spec = { train: {} };
const averaged = { train: { ema: {} } } as Spec;
const adapter = { train: { adapter: {} } } as Spec;

t.test('what can be exported depends on the run and on the format', async (t) => {
  t.same(formatsOf(whole), ['safetensors', 'gguf', 'deepspeed_universal']);
  t.same(formatsOf(adapter), ['safetensors', 'gguf', 'peft', 'gguf_lora']);
  t.same(dtypesOf('deepspeed_universal'), ['fp32']);
  t.same(dtypesOf('peft'), ['bf16', 'fp16', 'fp32']);
  t.same(dtypesOf('gguf'), ['bf16', 'fp16', 'fp32', 'q8_0']);
  t.same(weightsOf('safetensors', whole), ['trained']);
  t.same(weightsOf('safetensors', averaged), ['trained', 'ema']);
  t.same(weightsOf('deepspeed_universal', averaged), ['trained']);
});

t.test('another format keeps what it allows', async (t) => {
  const kind = { dtype: 'bf16', weights: 'ema', tensorboard: true } as const;
  t.same(allowedKind({ format: 'safetensors', ...kind }, averaged), { format: 'safetensors', ...kind });
  t.same(allowedKind({ format: 'deepspeed_universal', ...kind }, averaged), {
    format: 'deepspeed_universal',
    dtype: 'fp32',
    weights: 'trained',
    tensorboard: true,
  });
});

t.test('another format without the dtype has its first one', async (t) => {
  const kind = { dtype: 'q8_0', weights: 'trained', tensorboard: false } as const;
  t.equal(allowedKind({ format: 'gguf', ...kind }, whole).dtype, 'q8_0');
  t.equal(allowedKind({ format: 'safetensors', ...kind }, whole).dtype, 'bf16');
});

t.test('addresses of files', async (t) => {
  t.equal(
    fileLink('ckpt_1', 'a b/c.safetensors', null),
    'v1/checkpoints/ckpt_1/file?name=a+b%2Fc.safetensors',
  );
  t.equal(
    fileLink('ckpt_1', 'config.json', { format: 'peft', dtype: 'bf16', weights: 'ema', tensorboard: false }),
    'v1/checkpoints/ckpt_1/file?name=config.json&format=peft&dtype=bf16&weights=ema&tensorboard=false',
  );
});
