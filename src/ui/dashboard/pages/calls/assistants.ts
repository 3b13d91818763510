// The account's assistants, for choosing one and for naming those a record names by uuid.
import { unwrap, useApi } from "../../data/session.tsx";
import { useData, type Data } from "../../data/use-data.ts";
import type { Option } from "../../kit/controls.tsx";

export interface AssistantName {
  id: number;
  uuid: string;
  name: string;
  type: string;
  status: string;
}

export function useAssistants(): Data<AssistantName[]> {
  const api = useApi();
  return useData("assistants/names", async () => {
    const list = await unwrap(api.GET("/user/assistants"));
    return list.map(({ id, uuid, name, type, status }) => ({ id, uuid, name, type, status }));
  });
}

export const assistantOptions = (assistants: readonly AssistantName[]): Option[] =>
  assistants.map(({ id, name }) => ({ value: String(id), label: name }));
