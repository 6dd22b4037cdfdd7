/** Commands and programs that use the model of a run. */

interface Model {
  /** Address of the API. */
  baseUrl: string;
  checkpoint_id: string;
  /** Whether the run learned chats. */
  isChat: boolean;
}

const download = (checkpoint: string, kind: string) =>
  `zerofleet export ${checkpoint} ${kind}\nzerofleet download ${checkpoint} ${kind} -o model\n`;

export const USES: Readonly<Record<string, (model: Model) => string>> = {
  'download all files': ({ checkpoint_id }) => download(checkpoint_id, '--format safetensors'),
  transformers: ({ checkpoint_id, isChat }) =>
    `${download(checkpoint_id, '--format safetensors')}python - <<'END'
from transformers import pipeline
generate = pipeline("text-generation", model="./model")
print(generate(${isChat ? '[{"role": "user", "content": "Hello"}]' : '"Hello"'})[0]["generated_text"])
END
`,
  vLLM: ({ checkpoint_id }) =>
    `${download(checkpoint_id, '--format safetensors')}vllm serve ./model --served-model-name mine\n`,
  'Ollama, with the Modelfile': ({ checkpoint_id }) =>
    `${download(checkpoint_id, '--format gguf --dtype q8_0')}(cd model && ollama create mine -f Modelfile)\nollama run mine\n`,
  "OpenAI's client": ({ baseUrl, checkpoint_id, isChat }) =>
    [
      'import os',
      'from openai import OpenAI',
      '',
      `client = OpenAI(base_url=${JSON.stringify(`${baseUrl}/openai/v1`)}, api_key=os.environ["ZEROFLEET_API_KEY"])`,
      ...(isChat
        ? [
            'answer = client.chat.completions.create(',
            `    model=${JSON.stringify(checkpoint_id)}, messages=[{"role": "user", "content": "Hello"}]`,
            ')',
            'print(answer.choices[0].message.content)',
          ]
        : [
            `answer = client.completions.create(model=${JSON.stringify(checkpoint_id)}, prompt="Hello")`,
            'print(answer.choices[0].text)',
          ]),
      '',
    ].join('\n'),
};
