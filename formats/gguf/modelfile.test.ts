import t from 'tap';
import { ChatTemplate } from '../encoding/chat-template.js';
import { modelfile } from './modelfile.js';

const fileOf = (template: string | null, beginText: string | null = null, stops: string[] = []) =>
  modelfile('model.gguf', {
    metadata: [],
    stops,
    beginText,
    template: template === null ? null : new ChatTemplate(template, { tokens: { bos_token: '<s>' } }),
  });

const CHATML =
  '{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';

t.test('a model without chats has no template', async (t) => {
  t.equal(fileOf(null, null, ['</s>']), 'FROM ./model.gguf\nPARAMETER stop "</s>"\n');
});

t.test('a template that writes one message after the other, and every stop token', async (t) => {
  t.equal(
    fileOf(CHATML, null, ['<|endoftext|>', '<|im_end|>']),
    `FROM ./model.gguf
TEMPLATE """{{ range .Messages }}{{ if eq .Role "system" }}{{ "<|im_start|>system\\n" }}{{ .Content }}{{ "<|im_end|>\\n" }}{{ else if eq .Role "user" }}{{ "<|im_start|>user\\n" }}{{ .Content }}{{ "<|im_end|>\\n" }}{{ else if eq .Role "assistant" }}{{ "<|im_start|>assistant\\n" }}{{ .Content }}{{ "<|im_end|>\\n" }}{{ end }}{{ end }}{{ "<|im_start|>assistant\\n" }}"""
PARAMETER stop "<|endoftext|>"
PARAMETER stop "<|im_end|>"
`,
  );
});

t.test('the begin token that Ollama adds is left out, others are kept', async (t) => {
  const template = `{{ bos_token }}${CHATML}`;
  t.notMatch(fileOf(template, '<s>'), '<s>');
  t.match(fileOf(template, null), '{{ if ne (index .Messages 0).Role "system" }}{{ "<s>" }}{{ end }}');
});

t.test('a system message by default', async (t) => {
  const template = `{% if messages[0].role != 'system' %}<|im_start|>system\nBe "kind".<|im_end|>\n{% endif %}${CHATML}`;
  t.match(
    fileOf(template),
    '{{ if ne (index .Messages 0).Role "system" }}{{ "<|im_start|>system\\nBe \\"kind\\"." }}{{ end }}',
  );
});

t.test('a template that refuses system messages', async (t) => {
  const template = `{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}[BEGIN]${CHATML}`;
  t.match(fileOf(template), 'TEMPLATE """{{ "[BEGIN]" }}{{ range .Messages }}{{ if eq .Role "user" }}');
});

t.test('a template of another kind has no equal', async (t) => {
  const numbered = CHATML.replace('{{ message.content }}', '{{ loop.index }}{{ message.content }}');
  const ignored = CHATML.replace('<|im_start|>', "{% if message.role != 'system' %}<|im_start|>").replace(
    '{% endfor %}',
    '{% endif %}{% endfor %}',
  );
  for (const template of [numbered, ignored]) {
    t.match(fileOf(template), '# Ollama needs a TEMPLATE');
    t.notMatch(fileOf(template), /^TEMPLATE/m);
  }
});
