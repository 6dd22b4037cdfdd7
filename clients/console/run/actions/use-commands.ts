/** Commands and programs that use the model of a run. */
import { quoted } from '../../new/commands.js';

interface Model {
  /** Address of the API. */
  baseUrl: string;
  checkpoint_id: string;
  /** Name of the checkpoint in OpenAI's API. */
  fine_tuned: string;
  /** Whether the run learned chats. */
  isChat: boolean;
}

const download = ({ baseUrl, checkpoint_id }: Model, kind: string) =>
  [
    `export ZEROFLEET_URL=${quoted(baseUrl)}`,
    `zerofleet export ${checkpoint_id} ${kind}`,
    `zerofleet download ${checkpoint_id} ${kind} -o model`,
    '',
  ].join('\n');

export const USES: Readonly<Record<string, (model: Model) => string>> = {
  'download all files': (model) => download(model, '--format safetensors'),
  transformers: (model) =>
    `${download(model, '--format safetensors')}python - <<'END'
from transformers import pipeline
generate = pipeline("text-generation", model="./model")
print(generate(${model.isChat ? '[{"role": "user", "content": "Hello"}]' : '"Hello"'})[0]["generated_text"])
END
`,
  vLLM: (model) => `${download(model, '--format safetensors')}vllm serve ./model --served-model-name mine\n`,
  'Ollama, with the Modelfile': (model) =>
    `${download(model, '--format gguf --dtype q8_0')}(cd model && ollama create mine -f Modelfile)\nollama run mine\n`,
  "OpenAI's client": ({ baseUrl, fine_tuned, isChat }) =>
    [
      'import os',
      'from openai import OpenAI',
      '',
      `client = OpenAI(base_url=${JSON.stringify(`${baseUrl}/openai/v1`)}, api_key=os.environ["ZEROFLEET_API_KEY"])`,
      `model = ${JSON.stringify(fine_tuned)}`,
      ...(isChat
        ? [
            'messages = [{"role": "user", "content": "Hello"}]',
            'answer = client.chat.completions.create(model=model, messages=messages)',
            'print(answer.choices[0].message.content)',
          ]
        : [
            'answer = client.completions.create(model=model, prompt="Hello")',
            'print(answer.choices[0].text)',
          ]),
      '',
    ].join('\n'),
};
